package event_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/shared/event"
)

func TestPrefixes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		path   string
		family event.Family
		want   []string
	}{
		{"/", event.OrderEvent, nil},
		{"/a/|/", event.OrderEvent, nil},
		{"/a/", event.OrderEvent, []string{"/a/"}},
		{"/a/*", event.OrderEvent, []string{"/a/"}},
		{"/*", event.OrderEvent, []string{"/"}},
		{"/a/x", event.OrderEvent, []string{"/a/x,"}},
		{"/a/x,117", event.OrderEvent, []string{"/a/x,117"}},
		{"/a/x|/a/x,117|/a/x/", event.OrderEvent, []string{"/a/x,", "/a/x/"}},
		{"/b/|/a/|/a/c/|/ab/|/a/x", event.OrderEvent, []string{"/a/", "/ab/", "/b/"}},
		{"/a/x", event.JobChainEvent, []string{"/a/x"}},
		{"/a/x", event.TaskEvent, []string{"/a/x"}},
		{"/a|/ab|/ac", event.JobEvent, []string{"/a"}},
		{"/a/x", event.CustomEvent, []string{"/a/x", "a/x"}},
		{"/*", event.CustomEvent, []string{""}},
		{"/a/", event.FileBasedEvent, nil},
	} {
		q, err := event.ParsePath(c.path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, q.Prefixes(c.family)); diff != "" {
			t.Errorf("%s of %s (-want +got):\n%s", c.path, c.family, diff)
		}
	}
}

// A key that a query selects begins with one of its prefixes.
func TestPrefixesLeaveNothingOut(t *testing.T) {
	t.Parallel()
	families := []event.Family{event.OrderEvent, event.JobChainEvent, event.TaskEvent, event.FileBasedEvent, event.CustomEvent}
	rapid.Check(t, func(t *rapid.T) {
		family := rapid.SampledFrom(families).Draw(t, "family")
		q, err := event.ParsePath(strings.Join(rapid.SliceOfN(rapid.StringMatching(`/([a-c]{1,2}/){0,2}([a-c](,1{1,2})?|\*)?`), 1, 4).Draw(t, "query"), "|"))
		if err != nil {
			t.Fatal(err)
		}
		key := rapid.StringMatching(`(Job:)?/?([a-c]{1,2}/){0,3}[a-c](,1{1,3})?`).Draw(t, "key")
		if !strings.HasPrefix(key, "/") && family != event.CustomEvent && family != event.FileBasedEvent {
			t.Skip("only these keys begin without a slash")
		}
		if family == event.OrderEvent && !strings.Contains(key, ",") {
			t.Skip("an order's key is that of its chain, a comma and its id")
		}
		prefixes := q.Prefixes(family)
		begins := func(prefix string) bool { return strings.HasPrefix(key, prefix) }
		if prefixes != nil && q.MatchKey(family, event.Key{Path: key}) && !slices.ContainsFunc(prefixes, begins) {
			t.Errorf("%q begins with none of %q", key, prefixes)
		}
		for i, prefix := range prefixes {
			if i > 0 && (prefix <= prefixes[i-1] || strings.HasPrefix(prefix, prefixes[i-1])) {
				t.Errorf("%q follows %q", prefix, prefixes[i-1])
			}
		}
	})
}

func TestNamesOrder(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{"/": false, "/a": false, "/a,b/": false, "/a,1": true, "/b/|/a/x,1": true, "/a,b/*": false} {
		q, err := event.ParsePath(path)
		if err != nil || q.NamesOrder() != want {
			t.Errorf("%s: %t, want %t (%v)", path, q.NamesOrder(), want, err)
		}
	}
}
