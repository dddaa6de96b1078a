package witness

import (
	"bytes"
	"fmt"
	"slices"
	"sync"

	"github.com/millrace/millrace/shared/event"
)

// Witness remembers every event that was acknowledged. It is safe for concurrent use.
type Witness struct {
	mu    sync.Mutex
	acked map[event.ID]event.Event
	count int
}

// Acknowledged notes that the events were appended under these ids.
func (w *Witness) Acknowledged(events []event.Event, ids []event.ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.acked == nil {
		w.acked = map[event.ID]event.Event{}
	}
	for i, id := range ids {
		e := events[i]
		e.ID = id
		w.acked[id] = e
	}
	w.count += len(ids)
}

// Count returns how many events were acknowledged so far.
func (w *Witness) Count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.count
}

// Journal returns what was acknowledged and matches, in the order of the ids: what the journal must show.
func (w *Witness) Journal(match func(*event.Event) bool) []event.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []event.Event
	for _, e := range w.acked {
		if match == nil || match(&e) {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b event.Event) int { return int(a.ID - b.ID) })
	return all
}

// Verdict counts what is wrong with what a follower saw; the zero Verdict says that nothing is.
type Verdict struct {
	Missed    int // acknowledged, and never seen
	Doubled   int // seen more than once
	Unordered int // seen after an event with a higher id
	Strange   int // seen, and not as it was acknowledged
}

// OK reports whether nothing is wrong.
func (v Verdict) OK() bool { return v == Verdict{} }

// String returns it in a few words.
func (v Verdict) String() string {
	if v.OK() {
		return "complete and in order"
	}
	return fmt.Sprintf("%d missed, %d doubled, %d out of order, %d strange", v.Missed, v.Doubled, v.Unordered, v.Strange)
}

// Judge compares what a follower saw with what it should have seen.
func Judge(want, saw []event.Event) Verdict {
	var v Verdict
	left := make(map[event.ID]*event.Event, len(want))
	for i := range want {
		left[want[i].ID] = &want[i]
	}
	seen := make(map[event.ID]bool, len(saw))
	last := event.ID(0)
	for i := range saw {
		e := &saw[i]
		switch acked := left[e.ID]; {
		case seen[e.ID]:
			v.Doubled++
		case acked == nil || !same(acked, e):
			v.Strange++
		}
		if e.ID < last {
			v.Unordered++
		}
		last = max(last, e.ID)
		seen[e.ID] = true
		delete(left, e.ID)
	}
	v.Missed = len(left)
	return v
}

func same(a, b *event.Event) bool {
	return a.Type == b.Type && a.Key == b.Key && bytes.Equal(a.Fields, b.Fields)
}
