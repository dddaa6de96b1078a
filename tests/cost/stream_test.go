package cost_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/store/meter"
	"github.com/millrace/millrace/shared/stream"
)

var (
	streamOwner    = stream.UUID{15: 1}
	streamConsumer = stream.UUID{15: 2}
)

// streams returns access to streams on a store whose cost is known.
func streams(m *metered) *stream.Streams {
	return stream.Open(stream.Options{Store: m.meter, Journal: m.Journal})
}

// streamEvents are n events of about 256 bytes, of so many names in turn.
func streamEvents(n, names int) []stream.Event {
	all := make([]stream.Event, n)
	for i := range all {
		all[i] = stream.Event{
			Name: fmt.Sprint("Thing ", i%names, " happened"), Version: 1, Body: []byte(`"payload":{"x":"` + strings.Repeat("x", 236) + `"}`),
		}
	}
	return all
}

func appendTo(t *testing.T, s *stream.Streams, name string, events []stream.Event) []stream.Appended {
	t.Helper()
	r, err := s.Append(t.Context(), stream.Append{Stream: name, Producer: streamOwner, Events: events})
	if err != nil {
		t.Fatal(err)
	}
	return r.Events
}

// A single append: the ticket, the head, the name, the order, the entry and the slot, and nothing is read.
func TestAStreamAppendCosts11WCU(t *testing.T) {
	t.Parallel()
	m := setup(t)
	s := streams(m)
	appendTo(t, s, "s", streamEvents(1, 1))
	m.meter.Reset()
	appendTo(t, s, "s", streamEvents(1, 1))
	u := m.meter.Reset()
	if got := (written{u.Write.Calls, u.Reserve.Calls, u.Write.WCU + u.Reserve.WCU}); got != (written{1, 1, 11}) || u.Get.Calls+u.Query.Calls > 0 {
		t.Errorf("one event costs %+v, %v and %v to read", got, u.Get, u.Query)
	}
	events := appendTo(t, s, "s", streamEvents(100, 1))
	if u = m.meter.Reset(); u.Total().WCU > 100 {
		t.Errorf("a hundred at once cost %v, want at most 1 WCU each", u.Total())
	}
	if _, err := s.Acknowledge(t.Context(), "s", streamConsumer, events[0].ID); err == nil {
		t.Error("an event was acknowledged out of order")
	}
	first, err := s.Read(t.Context(), stream.Reading{Stream: "s", Consumer: streamConsumer, Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	m.meter.Reset()
	if _, err := s.Acknowledge(t.Context(), "s", streamConsumer, first[0].ID); err != nil {
		t.Fatal(err)
	}
	if u = m.meter.Reset(); u.Write.WCU != 1 || u.Reserve.Calls != 0 {
		t.Errorf("an acknowledgement costs %v", u.Total())
	}
}

// What a page costs does not depend on where it is: at the beginning of a hundred thousand events, in the middle, at the end.
func TestAPageOfAStreamCostsTheSameAnywhere(t *testing.T) {
	t.Parallel()
	m := &metered{meter: meter.New(memory.New(memory.Options{}))}
	m.open(t, m.meter)
	s := streams(m)
	const n = 100_000
	for range n / 1000 {
		appendTo(t, s, "s", streamEvents(1000, 2))
	}
	for _, name := range []string{"Thing 0 happened", ""} {
		var costs []meter.Cost
		for _, at := range []int64{0, n / 4, n/2 - 100} {
			for i := range 2 {
				if err := s.Move(t.Context(), "s", streamConsumer, fmt.Sprintf("Thing %d happened", i), at); err != nil {
					t.Fatal(err)
				}
			}
			m.meter.Reset()
			found, err := s.Read(t.Context(), stream.Reading{Stream: "s", Consumer: streamConsumer, Name: name, Limit: 100})
			if err != nil || len(found) != 100 {
				t.Fatalf("Read = %d, %v", len(found), err)
			}
			costs = append(costs, m.meter.Reset().Total())
		}
		for _, c := range costs[1:] {
			if c.RCU > 1.5*costs[0].RCU || c.Calls > costs[0].Calls+2 {
				t.Errorf("name %q: a page costs %v at the beginning, then %v", name, costs[0], costs[1:])
			}
		}
		t.Logf("name %q: %v", name, costs)
	}
	// A consumer that is at the end of one name and at the beginning of another does not pay for the events between.
	if err := s.Move(t.Context(), "s", streamConsumer, "Thing 0 happened", 0); err != nil {
		t.Fatal(err)
	}
	if err := s.Move(t.Context(), "s", streamConsumer, "Thing 1 happened", n/2); err != nil {
		t.Fatal(err)
	}
	appendTo(t, s, "s", []stream.Event{{Name: "Thing 1 happened", Version: 1, Body: []byte(`"payload":{}`)}})
	if err := s.Move(t.Context(), "s", streamConsumer, "Thing 0 happened", n/2); err != nil {
		t.Fatal(err)
	}
	m.meter.Reset()
	found, err := s.Read(t.Context(), stream.Reading{Stream: "s", Consumer: streamConsumer, Limit: 100})
	if cost := m.meter.Reset().Total(); err != nil || len(found) != 1 || cost.RCU > 30 {
		t.Errorf("the newest of 100,001 events: %d found, %v, at %v", len(found), err, cost)
	}
	if diff := cmp.Diff("Thing 1 happened", found[0].Name); diff != "" {
		t.Error(diff)
	}
}
