package queue_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/store/meter"
	"github.com/millrace/millrace/shared/task"
)

// families is a set with a family of ordered queues and a family of queues that are not.
func families() *definition.Set {
	d := set()
	for name, kind := range map[string]definition.QueueType{"mail": "", "strictly": definition.Ordered} {
		d.Queues = append(d.Queues, definition.Queue{Name: name + "-{0}", Type: kind, Topics: []string{name + "/*"}})
		for i := range 20 {
			d.Jobs = append(d.Jobs, definition.Job{
				Path: fmt.Sprintf("/topics/%s/%d", name, i), Target: definition.Target{Go: "f"}, Lease: time.Minute,
			})
		}
	}
	return d
}

// inFamilies returns an engine with families, on a metered store.
func inFamilies(t *testing.T, alone bool) (*bench, *meter.Meter) {
	t.Helper()
	b := setupWith(t, families())
	b.store = store.Store(memory.New(memory.Options{Date: b.clock.now}))
	if !alone {
		b.store = shared{b.store}
	}
	m := meter.New(b.store)
	b.store = m
	b.open(families())
	return b, m
}

// open opens another engine, which keeps nothing in memory of what was done before.
func (b *bench) open(d *definition.Set) {
	b.journal = journal.Open(b.store, journal.Options{Now: b.clock.now, Folds: projection.Folds()})
	b.t.Cleanup(func() { _ = b.journal.Close() })
	b.Queue = queue.Open(queue.Options{Store: b.store, Journal: b.journal, Definitions: fixed{d}, Now: b.clock.now})
}

// member returns a task of one queue of a family.
func member(family string, i int) queue.New {
	return queue.New{
		Dialect: task.Job, Job: fmt.Sprintf("/topics/%s/%d", family, i), Queue: fmt.Sprintf("%s-%d", family, i), Attempts: 2, RetryDelay: time.Nanosecond,
	}
}

// The reads of a claim do not grow with the number of queues that ever had tasks.
func TestAClaimDoesNotReadQueuesOfLongAgo(t *testing.T) {
	t.Parallel()
	eitherWay(t, func(t *testing.T, alone bool) {
		b, m := inFamilies(t, alone)
		b.claim(1)
		m.Reset()
		b.claim(1)
		before := m.Reset().Total().Calls
		for i := range 20 {
			b.enqueue(member("mail", i), member("strictly", i))
		}
		for range 40 {
			b.complete(b.claim(1)[0], queue.Result{Outcome: queue.OK})
		}
		m.Reset()
		b.claim(1)
		used := m.Reset().Total().Calls
		b.clock.advance(time.Hour)
		if _, err := b.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.claim(1)
		m.Reset()
		b.claim(1)
		if after := m.Reset().Total().Calls; after != before {
			t.Errorf("an empty claim made %d calls, %d just after 40 queues were used, and %d an hour later, want as many as at first", before, used, after)
		}
		for i := range 20 {
			b.enqueue(member("strictly", i))
		}
		for range 20 {
			b.complete(b.claim(1)[0], queue.Result{Outcome: queue.OK})
		}
	})
}

// Nor does the cost of waiting, which depends on the lines that waiting instances take from.
func TestWaitingReadsTheLinesOfThoseWhoWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := meter.New(shared{memory.New(memory.Options{})})
		b := &bench{t: t, store: m, clock: clockAt(time.Now())}
		b.journal = journal.Open(m, journal.Options{Folds: projection.Folds()})
		b.Queue = queue.Open(queue.Options{Store: m, Journal: b.journal, Definitions: fixed{&definition.Set{}}})
		defer b.journal.Close()
		defer b.Drain()
		for i := range 50 {
			b.enqueue(queue.New{Dialect: task.Job, Job: fmt.Sprintf("/topics/a/%d", i)})
			b.complete(b.byInstance(1)[0], queue.Result{Outcome: queue.OK})
		}
		minute := func(jobs string) int {
			w := b.Wait(queue.Claimer{Instance: "w/1", Jobs: []string{jobs}})
			defer w.End()
			time.Sleep(time.Minute) // until the alarm for the leases has gone off
			m.Reset()
			time.Sleep(time.Minute)
			return m.Reset().Total().Calls
		}
		if calls := minute("/topics/a/1"); calls > 3*60 {
			t.Errorf("a minute of waiting for one of 50 topics took %d calls, want at most three a second", calls)
		}
		time.Sleep(time.Hour)
		if _, err := b.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if calls := minute("/topics/**"); calls > 2*60 {
			t.Errorf("a minute of waiting for all topics of an hour ago took %d calls, want at most two a second", calls)
		}
	})
}

// found demands that a new process finds one ready task.
func (b *bench) found(what string, want task.ID) {
	b.t.Helper()
	b.open(families())
	if got := b.claim(5); len(got) != 1 || got[0].Task.ID != want {
		b.t.Errorf("%s: Claim = %v, want %s", what, ids(got), want)
	}
}

// A queue is never forgotten while a task waits in it, and is registered again with the first task that comes back to it.
func TestAQueueIsKnownWhileATaskWaits(t *testing.T) {
	t.Parallel()
	eitherWay(t, func(t *testing.T, alone bool) {
		b, _ := inFamilies(t, alone)
		sweep := func() {
			b.clock.advance(time.Hour)
			if _, err := b.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		id := b.enqueue(member("mail", 1))[0].Task.ID
		sweep()
		sweep()
		leases := b.claim(1)
		if len(leases) != 1 {
			t.Fatal("what waits for two hours is not found")
		}
		for range 60 {
			b.clock.advance(time.Minute / 2)
			if _, err := b.Heartbeat(t.Context(), leases[0].Token, queue.Beat{}); err != nil {
				t.Fatal(err)
			}
		}
		if s, err := b.Sweep(t.Context()); err != nil || s.Lost > 0 { // nothing waits there now
			t.Fatalf("a sweep found %d lost tasks, %v, want none", s.Lost, err)
		}
		b.complete(leases[0], queue.Result{Outcome: queue.Failed})
		b.clock.advance(time.Second)
		b.found("the next attempt", id)
	})
}

// A process adds to a queue that it has just used, and its write takes so long that the queue is forgotten meanwhile.
func TestAQueueIsKnownThoughItWasForgottenDuringAWrite(t *testing.T) {
	t.Parallel()
	eitherWay(t, func(t *testing.T, alone bool) {
		b, _ := inFamilies(t, alone)
		p := &paused{Store: b.store}
		b.store = p
		b.open(families())
		b.enqueue(member("mail", 1))
		b.complete(b.claim(1)[0], queue.Result{Outcome: queue.OK})
		other := &bench{t: t, store: shared{p.Store}, clock: b.clock}
		other.open(families())
		p.meanwhile = func() {
			b.clock.advance(time.Hour)
			if _, err := other.Sweep(t.Context()); err != nil {
				t.Error(err)
			}
		}
		id := b.enqueue(member("mail", 1))[0].Task.ID
		other.found("what was added to a queue that was forgotten meanwhile", id)
	})
}
