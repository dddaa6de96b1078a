package queue_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/store/meter"
	counting "github.com/millrace/millrace/shared/store/tally"
	"github.com/millrace/millrace/shared/task"
)

// What waiting reads follows the queues that are waited for, not who waits: a thousand instances over a hundred queues and a thousand
// followers in a process read as much as one for each queue.
func TestWaitingCostsByQueuesAndNotByWaiters(t *testing.T) {
	t.Parallel()
	const queues, seconds = 100, 30
	used := map[int]meter.Cost{}
	for _, waiters := range []int{1, 10} { // for each queue
		synctest.Test(t, func(t *testing.T) {
			m := meter.New(shared{memory.New(memory.Options{})})
			b := &bench{t: t, store: m, journal: journal.Open(m, journal.Options{Folds: projection.Folds()})}
			defer b.journal.Close()
			set := &definition.Set{}
			for n := range queues {
				name := fmt.Sprint("q", n)
				set.Queues = append(set.Queues, definition.Queue{Name: name})
				set.Jobs = append(set.Jobs, definition.Job{Path: "/" + name, Queue: name})
			}
			b.Queue = queue.Open(queue.Options{Store: m, Journal: b.journal, Definitions: fixed{set}})
			defer b.Drain()
			var waits []*queue.Waiting
			for n := range queues {
				by := queue.Claimer{Instance: "i", Capacity: 1, Jobs: []string{fmt.Sprint("/q", n)}}
				b.enqueue(queue.New{Dialect: task.Job, Job: by.Jobs[0]})
				l, err := b.Claim(t.Context(), by, 1)
				if err != nil || len(l) != 1 {
					t.Fatalf("Claim = %d, %v", len(l), err)
				}
				b.complete(l[0], queue.Result{Outcome: queue.OK})
				for w := range waiters {
					by.Instance = fmt.Sprint("i", n, "-", w)
					waits = append(waits, b.Wait(by))
				}
			}
			a, err := b.journal.ReadAfter(t.Context(), journal.Request{})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			var followers sync.WaitGroup
			for range queues * waiters {
				followers.Go(func() {
					_, _ = b.journal.ReadAfter(ctx, journal.Request{After: a.LastEventID, Timeout: time.Hour})
				})
			}
			time.Sleep(time.Minute) // leases that are gone are forgotten
			m.Reset()
			time.Sleep(seconds * time.Second)
			used[waiters] = m.Usage().Total()
			cancel()
			followers.Wait()
			for _, w := range waits {
				w.End()
			}
		})
	}
	// Each second one read of each line, and at most ten more: of what is due, of the sequencer, of what is remembered for a while. Each
	// costs half a unit.
	if most := float64(seconds*(queues+10)) / 2; used[1].RCU > most || used[10].RCU > most {
		t.Errorf("%d seconds of waiting cost %v with a hundred waiters, and %v with a thousand, want at most %v RCU", seconds, used[1], used[10], most)
	}
}

// A thousand instances that wait for a job, and a thousand followers, take some ten calls of the store a second.
func TestAThousandThatWaitTakeFewCalls(t *testing.T) {
	t.Parallel()
	const waiters, seconds, most = 1000, 60, 10
	synctest.Test(t, func(t *testing.T) {
		s := counting.New(shared{memory.New(memory.Options{})})
		b := &bench{t: t, store: s, journal: journal.Open(s, journal.Options{Folds: projection.Folds()})}
		defer b.journal.Close()
		b.Queue = queue.Open(queue.Options{Store: s, Journal: b.journal, Definitions: fixed{&definition.Set{}}})
		defer b.Close()
		b.enqueue(queue.New{Dialect: task.Job, Job: "/topics/a"})
		b.complete(b.byInstance(1)[0], queue.Result{Outcome: queue.OK})
		a, err := b.journal.ReadAfter(t.Context(), journal.Request{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var followers sync.WaitGroup
		for i := range waiters {
			w := b.Wait(queue.Claimer{Instance: fmt.Sprint("w/", i), Capacity: 1, Jobs: []string{"/topics/a"}})
			defer w.End()
			followers.Go(func() {
				_, _ = b.journal.ReadAfter(ctx, journal.Request{After: a.LastEventID, Timeout: time.Hour})
			})
		}
		time.Sleep(time.Minute) // leases that are gone are forgotten
		before := s.Calls()
		time.Sleep(seconds * time.Second)
		calls := int64(0)
		for method, n := range s.Calls() {
			calls += n - before[method]
		}
		cancel()
		followers.Wait()
		if calls > most*seconds {
			t.Errorf("%d s of waiting took %d calls, want at most %d a second", seconds, calls, most)
		}
	})
}
