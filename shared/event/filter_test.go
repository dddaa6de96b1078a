package event_test

import (
	"testing"

	"github.com/millrace/millrace/shared/event"
)

func TestMatchKey(t *testing.T) {
	t.Parallel()
	path := func(p string) event.Key { return event.Key{Path: p} }
	task := event.Key{Path: "/f/job", TaskID: "9"}
	for _, c := range []struct {
		query  string
		family event.Family
		key    event.Key
		want   bool
	}{
		{"/f/", event.OrderEvent, path("/f/chain,1"), true},
		{"/f/chain", event.OrderEvent, path("/f/chain,1"), true},
		{"/f/chain,1", event.OrderEvent, path("/f/chain,1"), true},
		{"/f/chain,1", event.OrderEvent, path("/f/chain,11"), false},
		{"/f/chain,1|/f/chain,2", event.OrderEvent, path("/f/chain,2"), true},
		{"/f/chain,a/b", event.OrderEvent, path("/f/chain,a/b"), true},
		{"/f/*", event.OrderEvent, path("/f/chain,a/b"), true}, // the slash in an order's id does not make a folder
		{"/f/chain/", event.OrderEvent, path("/f/chain,1"), false},
		{"/", event.OrderEvent, path("/f/chain,1"), true},
		{"/f/", event.FileBasedEvent, path("Job:/f/job"), true},
		{"/f/job", event.FileBasedEvent, path("Job:/f/job"), true},
		{"/f/job", event.FileBasedEvent, path("JobChain:/f/job"), true},
		{"/Job:/f/job", event.FileBasedEvent, path("Job:/f/job"), false},
		{"/f/job", event.FileBasedEvent, path("/f/job"), false},
		{"/f/job", event.TaskEvent, task, true},
		{"/f/*", event.TaskEvent, task, true},
		{"/f", event.TaskEvent, task, false},
		{"/f/job", event.JobEvent, path("/f/job"), true},
		{"/f/a,b", event.CustomEvent, path("/f/a,b"), true},
		{"/f/a", event.CustomEvent, path("/f/a,b"), false},
		{"/f/", event.CustomEvent, event.Key{}, false},
		{"/", event.CustomEvent, event.Key{}, true},
	} {
		q, err := event.ParsePath(c.query)
		if err != nil {
			t.Fatalf("ParsePath(%s) = %v", c.query, err)
		}
		if got := q.MatchKey(c.family, c.key); got != c.want {
			t.Errorf("%s: MatchKey(%s, %v) = %t, want %t", c.query, c.family, c.key, got, c.want)
		}
	}
}

func TestFilterOmitsKey(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		query  string
		family event.Family
		want   bool
	}{
		{"/f/chain,1", event.OrderEvent, true},
		{"/f/chain", event.OrderEvent, false},
		{"/f/", event.OrderEvent, false},
		{"/f/job", event.JobEvent, true},
		{"/f/chain", event.JobChainEvent, true},
		{"/f/object", event.CustomEvent, true},
		{"/f/*", event.CustomEvent, false},
		{"/f/a|/f/b", event.CustomEvent, false},
		{"/f/job", event.TaskEvent, false},
		{"/f/job", event.FileBasedEvent, false},
		{"/f/object", "", false},
	} {
		q, err := event.ParsePath(c.query)
		if err != nil {
			t.Fatalf("ParsePath(%s) = %v", c.query, err)
		}
		f := event.Filter{Types: event.Everything(), Family: c.family, Paths: q}
		if got := f.OmitsKey(); got != c.want {
			t.Errorf("%s of %q: OmitsKey() = %t, want %t", c.query, c.family, got, c.want)
		}
	}
}

func TestFilterMatch(t *testing.T) {
	t.Parallel()
	f := objectFilter(t, "Paid,Shipped", 1)
	here, there := event.Key{Path: "/packages/x"}, event.Key{Path: "/elsewhere/x"}
	for _, c := range []struct {
		name string
		e    event.Event
		want bool
	}{
		{"type and path", event.Event{Type: "Paid", Key: here}, true},
		{"other path", event.Event{Type: "Paid", Key: there}, false},
		{"other type", event.Event{Type: "Refunded", Key: here}, false},
	} {
		if got := f.Match(&c.e); got != c.want {
			t.Errorf("%s: Match = %t, want %t", c.name, got, c.want)
		}
	}
	anywhere := event.Filter{Types: event.Everything()}
	if !anywhere.Match(&event.Event{Type: "SchedulerClosed"}) {
		t.Error("a filter of no family refuses an event without a key")
	}
}

func TestMatchDoesNotAllocate(t *testing.T) {
	f := objectFilter(t, "Event", 10)
	e := event.Event{Type: "PackageInstalled", Key: event.Key{Path: "/packages/core/linux"}}
	if n := testing.AllocsPerRun(100, func() { f.Match(&e) }); n != 0 {
		t.Errorf("Match allocates %v times, want 0", n)
	}
}
