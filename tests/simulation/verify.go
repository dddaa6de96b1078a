package simulation

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
)

// aftermath continues hours later, when all that was evicted may be removed: it sweeps, writes some more, and demands that a reader
// that starts then finds a whole journal.
func (r *run) aftermath() {
	if r.ctx.Err() != nil {
		return // readers could not reach the end, which is reported already
	}
	for visit := range 2 {
		time.Sleep(2 * time.Hour)
		p := r.visitor("late" + strconv.Itoa(visit))
		if _, err := p.Sweep(r.ctx); err != nil {
			r.report("liveness", "sweep: %v", err)
		}
		w := &writer{run: r, home: &home[*process]{lives: 1, current: p}, name: "w" + strconv.Itoa(7+visit), luck: dice(r.plan.seed, "late")}
		for n := range 12 {
			plain(w, n)
		}
		r.leaveHoles(p)
		if _, err := p.Sweep(r.ctx); err != nil {
			r.report("liveness", "sweep: %v", err)
		}
		stamp, ok := r.snapshot(p)
		if !ok {
			r.report("liveness", "no snapshot can be had hours later")
		}
		r.recallAll(p, w.luck, stamp)
		rd := &reader{run: r, home: w.home, name: "late", luck: w.luck, cursor: r.audit.floorAt(time.Now()).id}
		for tries := 0; rd.cursor < stamp && tries < 20; tries++ {
			rd.request()
		}
		if rd.cursor < stamp {
			r.report("liveness", "a reader hours later stops at %d before %d", rd.cursor, stamp)
		}
		_ = p.Close()
	}
}

// leaveHoles takes many tickets that nobody will use, as the crash of a busy process does, and demands that a reader has passed all
// of them about one grace later: their graces run in parallel, or readers would fall behind.
func (r *run) leaveHoles(p *process) {
	key := store.Key{Table: store.Journal, Partition: "H#" + journal.Main, Sort: "0"}
	for range manyHoles {
		if _, err := p.line.Reserve(r.ctx, key, 1, time.Now().UnixMicro()); err != nil {
			r.report("liveness", "reserve: %v", err)
		}
	}
	began := time.Now()
	if _, ok := r.snapshot(p); !ok || time.Since(began) > grace+manyHoles*20*time.Millisecond {
		r.report("liveness", "a reader takes %v to pass %d holes", time.Since(began), manyHoles)
	}
}

// manyHoles is how many tickets a busy process may hold when it crashes.
const manyHoles = 32

// truth is the journal as it was written: every event of every slot's first writer, in order.
type truth []event.Event

// verify compares what each call returned with the truth.
func (r *run) verify() {
	if r.ctx.Err() != nil {
		return // readers could not reach the end, and a reader of the archive may not either
	}
	j := journal.Open(history{Store: r.audit.archive, sequencer: r.audit.Store}, journal.Options{Timing: timing, Run: r.plan.run})
	defer func() { _ = j.Close() }()
	all, err := j.ReadAfter(context.Background(), journal.Request{})
	if err != nil {
		r.report("rising ids", "the journal as it was written cannot be read: %v", err)
		return
	}
	events := truth(all.Events)
	r.verifyOrder(events)
	r.verifyEmissions(events)
	for _, s := range r.segments {
		r.verifySegment(events, s)
	}
	for _, g := range r.glances {
		r.verifyGlance(events, g)
	}
	r.verifySnapshots(events)
	r.verifyItems(events)
}

// verifyOrder checks "rising ids". A reader skips ids that do not rise, so that they are missing from the truth.
func (r *run) verifyOrder(events truth) {
	seen := map[string]bool{}
	for i := range events {
		if i > 0 && events[i].ID <= events[i-1].ID {
			r.report("rising ids", "id %d follows %d", events[i].ID, events[i-1].ID)
		}
		seen[labelOf(&events[i])] = true
	}
	for label, times := range r.audit.labels {
		if !seen[label] {
			r.report("rising ids", "the id of %s does not rise above those before it", label)
		}
		if times > 1 {
			r.report("acknowledged once", "%s is on the journal %d times", label, times)
		}
	}
}

// verifyEmissions checks "acknowledged once" and "refused is absent".
func (r *run) verifyEmissions(events truth) {
	ids := map[string]event.ID{}
	for i := range events {
		ids[labelOf(&events[i])] = events[i].ID
	}
	for _, e := range r.emissions {
		for i, label := range e.labels {
			id, present := ids[label]
			switch {
			case e.outcome == Acknowledged && !present:
				r.report("acknowledged once", "%s was acknowledged at %d and is not there", label, e.receipt.Position)
			case e.outcome == Acknowledged && id != e.receipt.FirstID+event.ID(i):
				r.report("acknowledged once", "%s was acknowledged with id %d and has %d", label, e.receipt.FirstID+event.ID(i), id)
			case e.outcome == Refused && present:
				r.report("refused is absent", "%s was refused and is there with id %d", label, id)
			}
		}
	}
}

// between returns the events that a reader with a habit sees after one id up to another.
func (events truth) between(after, last event.ID, h habit) []event.Event {
	var seen []event.Event
	match := h.match()
	from, _ := slices.BinarySearchFunc(events, after+1, func(e event.Event, id event.ID) int { return int(e.ID - id) })
	for i := from; i < len(events) && events[i].ID <= last; i++ {
		if match == nil || match(&events[i]) {
			seen = append(seen, events[i])
		}
	}
	return seen
}

// verifySegment checks "complete followers", and with it "nothing later": everything up to lastEventId was delivered.
func (r *run) verifySegment(events truth, s segment) {
	want := events.between(s.after, s.answer.LastEventID, s.habit)
	if s.habit.limit > 0 && len(s.answer.Events) > s.habit.limit {
		r.report("complete followers", "reader %s got %d events, limit %d", s.reader, len(s.answer.Events), s.habit.limit)
	}
	if at, equal := differ(s.answer.Events, want); !equal {
		r.report("complete followers", "reader %s, from %d to %d: got %d events, want %d, differing at %d",
			s.reader, s.after, s.answer.LastEventID, len(s.answer.Events), len(want), at)
	}
}

// verifyGlance checks a read of the newest events, which must be the last ones above the floor.
func (r *run) verifyGlance(events truth, g glance) {
	want := events.between(0, g.answer.LastEventID, g.habit)
	if len(want) > g.habit.limit {
		want = want[len(want)-g.habit.limit:]
	}
	got := g.answer.Events
	for len(want) > len(got) && want[0].ID <= g.floor.id { // evicted
		want = want[1:]
	}
	if at, equal := differ(got, want); !equal {
		r.report("complete followers", "%s to %d: got %d events, want %d, differing at %d", g.name, g.answer.LastEventID, len(got), len(want), at)
	}
}

func differ(a, b []event.Event) (at int, equal bool) {
	for at = range min(len(a), len(b)) {
		if a[at].ID != b[at].ID || string(a[at].Fields) != string(b[at].Fields) {
			return at, false
		}
	}
	return min(len(a), len(b)), len(a) == len(b)
}

// verifySnapshots checks "snapshot and events": each snapshot is the fold of the truth up to its stamp.
func (r *run) verifySnapshots(events truth) {
	slices.SortFunc(r.snapshots, func(a, b stamped) int { return int(a.stamp - b.stamp) })
	var state journal.State
	want := map[string]string{}
	next := 0
	for _, s := range r.snapshots {
		for ; next < len(events) && events[next].ID <= s.stamp; next++ {
			newest.Apply(&state, &events[next])
			path := events[next].Key.Path
			want[path] = string(state.Get(path))
		}
		if !maps.Equal(s.objects, want) {
			r.report("snapshot and events", "snapshot at %d is %v, want %v", s.stamp, s.objects, want)
		}
	}
}

// verifyItems checks that the shared items are the fold of their events: each event counts from where the one before ended, and
// the last ends at the item's count.
func (r *run) verifyItems(events truth) {
	for _, name := range []string{"A", "B"} {
		count := 0
		for i := range events {
			e := &events[i]
			if e.Key.Path != "/item/"+name {
				continue
			}
			if from := numberIn(e, "from"); from != count {
				r.report("snapshot and events", "%s counts %s from %d when it is %d", labelOf(e), name, from, count)
			}
			count = numberIn(e, "to")
		}
		found, err := r.audit.Get(context.Background(), itemKey(name))
		if err != nil {
			panic(err)
		}
		if held := itemCount(found[0]); held != count {
			r.report("refused is absent", "item %s is %d, its events say %d", name, held, count)
		}
	}
}

func itemCount(item *store.Item) int {
	if item == nil {
		return 0
	}
	count, err := strconv.Atoi(string(item.Value))
	if err != nil {
		panic(err)
	}
	return count
}
