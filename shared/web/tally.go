package web

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/task"
)

// tally is how many objects were in each state.
type tally struct {
	Name   string
	Count  int
	States map[string]int
}

// add counts n objects in a state.
func (t *tally) add(state string, n int) {
	if n == 0 {
		return
	}
	if t.States == nil {
		t.States = make(map[string]int)
	}
	t.States[state] += n
	t.Count += n
}

// tasksAt counts the tasks that were not finished at a moment, by job; "": now. The caller has asked the API for that moment.
func (r *reading) tasksAt(at string) []*tally {
	return r.tallies(projection.TaskCountsName, at, journal.Part{}, func(path string, value []byte) *tally {
		t, counts := &tally{Name: path}, projection.ReadTaskCounts(value)
		t.add("waiting", int(counts[task.Ready]))
		t.add("running", int(counts[task.Running]))
		return t
	})
}

// ordersAt is tasksAt of orders, by chain.
func (r *reading) ordersAt(at string) []*tally {
	part := journal.Part{Prefixes: []string{projection.OrderCounts}, Raw: true}
	return r.tallies(projection.OrdersName, at, part, func(key string, value []byte) *tally {
		t, c := &tally{Name: strings.TrimPrefix(key, projection.OrderCounts)}, projection.ReadOrderCount(key, value)
		known := 0
		for _, state := range []struct {
			name  string
			count int
		}{
			{"NotPlanned", c.NotPlanned}, {"Planned", c.Planned}, {"Due", c.Due}, {"InTaskProcess", c.InTaskProcess}, {"Setback", c.Setback},
			{"WaitingForResource", c.WaitingForResource}, {"Blacklisted", c.Blacklisted},
		} {
			t.add(state.name, state.count)
			known += state.count
		}
		t.add("WaitingInTask", max(0, c.Total-known))
		return t
	})
}

// tallies reads a projection's numbers, those with most objects first.
func (r *reading) tallies(fold, at string, part journal.Part, of func(key string, value []byte) *tally) (all []*tally) {
	r.snapshot(fold, at, part, func(key string, value []byte) {
		if t := of(key, value); t.Count > 0 {
			all = append(all, t)
		}
	})
	slices.SortFunc(all, func(a, b *tally) int { return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Name, b.Name)) })
	return all
}

// snapshot reads a part of a projection at a moment; "": now. It is read from the journal itself: an overview would have every object, as a
// text. Whether the role may read it, and the moment is one, the API has said before.
func (r *reading) snapshot(fold, at string, part journal.Part, each func(key string, value []byte)) {
	switch {
	case r.err != nil:
	case at == "":
		_, r.err = r.d.journal.SnapshotOf(r.r.Context(), fold, part, each)
	default:
		id, _ := strconv.ParseInt(at, 10, 64) // the API has read it as an id
		r.err = r.d.journal.SnapshotAt(r.r.Context(), fold, event.ID(id), part, each)
	}
}
