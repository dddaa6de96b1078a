package queue_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/notifier"
	"github.com/millrace/millrace/shared/notifier/local"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/store/meter"
	"github.com/millrace/millrace/shared/task"
)

// heard is a notifier that notes when it is called.
type heard struct{ at chan time.Time }

func (h heard) Notify(context.Context, ...notifier.Notice) error { h.at <- time.Now(); return nil }
func (h heard) Ping(context.Context) error                       { return nil }
func (h heard) Close() error                                     { return nil }

func TestRunStartsNothingLateAndDoesNothingBetween(t *testing.T) {
	t.Parallel()
	for _, delay := range []time.Duration{
		time.Second, 20 * time.Second, 16 * time.Minute, 36 * time.Hour, 400 * 24 * time.Hour,
	} {
		t.Run(delay.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := memory.New(memory.Options{})
				j := journal.Open(s, journal.Options{Folds: projection.Folds()})
				defer func() { _ = j.Close() }()
				b := heard{make(chan time.Time, 100)}
				q := queue.Open(queue.Options{Store: s, Journal: j, Notifier: b, Definitions: fixed{set()}})
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() { q.Run(ctx); close(done) }()
				synctest.Wait()
				due := time.Now().Add(delay)
				if _, err := q.Enqueue(ctx, nil, queue.New{Dialect: task.Job, Job: "/plain", NotBefore: due}); err != nil {
					t.Fatal(err)
				}
				if late := (<-b.at).Sub(due); late < 0 || late > time.Second {
					t.Errorf("the notification came %v after the task fell due, want within a second", late)
				}
				leases, err := q.Claim(ctx, queue.Claimer{}, 1)
				if err != nil || len(leases) != 1 {
					t.Fatalf("Claim = %v, %v, want the task", leases, err)
				}
				// Its worker dies. The lease runs out, which counts as its only attempt.
				time.Sleep(leases[0].Length + time.Second)
				synctest.Wait()
				got, err := q.Get(ctx, leases[0].Task.ID)
				if err != nil || got.State != task.Failed {
					t.Errorf("Get = %v, %v, want %v", got.State, err, task.Failed)
				}
				cancel()
				<-done
			})
		})
	}
}

// TestWhoWaitsHasTheNextAttemptOfAnOrderedQueueInTime: a task that keeps its place while it waits for its next attempt is not in the
// due index; whoever waits is woken all the same.
func TestWhoWaitsHasTheNextAttemptOfAnOrderedQueueInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := memory.New(memory.Options{})
		b := &bench{t: t, store: s, journal: journal.Open(s, journal.Options{Folds: projection.Folds()})}
		defer b.journal.Close()
		ordered, err := definition.Read("", []byte("queues: [{name: row, topics: [row], type: ordered}]"))
		if err != nil {
			t.Fatal(err)
		}
		b.Queue = queue.Open(queue.Options{Store: s, Journal: b.journal, Definitions: fixed{ordered}})
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		defer group.Wait()
		defer cancel()
		group.Go(func() { b.Run(ctx) })
		synctest.Wait()
		b.enqueue(queue.New{Dialect: task.Job, Job: "/topics/row", Queue: "row", Attempts: 3})
		for _, delay := range []time.Duration{200 * time.Millisecond, 20 * time.Second} {
			b.complete(b.byInstance(1)[0], queue.Result{Outcome: queue.Failed, RetryDelay: delay})
			began := time.Now()
			w := b.Wait(queue.Claimer{Instance: "w/2", Jobs: []string{"/topics/**"}})
			if early := b.byInstance(1); len(early) > 0 {
				t.Fatalf("claimed %+v before its time", early)
			}
			<-w.Ready()
			if took := time.Since(began); took < delay || took > delay+10*time.Millisecond {
				t.Errorf("who waits was woken %v after an attempt that is repeated after %v", took, delay)
			}
			w.Looks()
		}
		if again := b.byInstance(1); len(again) != 1 || again[0].Task.Attempt != 3 {
			t.Errorf("claimed %+v, want the third attempt", again)
		}
	})
}

// An engine that only waits does not call its store: it knows when the next entry falls due. Once a minute it sweeps.
func TestWaitingCostsNoStorageCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := meter.New(memory.New(memory.Options{}))
		j := journal.Open(s, journal.Options{Folds: projection.Folds()})
		defer func() { _ = j.Close() }()
		b := local.New()
		defer func() { _ = b.Close() }()
		q := queue.Open(queue.Options{Store: s, Journal: j, Notifier: b, Definitions: fixed{set()}})
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		group.Go(func() { q.Run(ctx) })
		defer group.Wait()
		defer cancel()
		begun := time.Now()
		if _, err := q.Enqueue(ctx, nil, queue.New{Dialect: task.Job, Job: "/plain", NotBefore: begun.Add(400 * 24 * time.Hour)}); err != nil {
			t.Fatal(err)
		}
		if leases, err := q.Claim(ctx, queue.Claimer{}, 1); err != nil || len(leases) != 0 { // as a worker does that finds nothing
			t.Fatalf("Claim = %v, %v, want nothing", leases, err)
		}
		time.Sleep(time.Second)
		sweeps := 0
		for second := range 600 {
			s.Reset()
			time.Sleep(time.Second)
			synctest.Wait()
			calls := s.Usage().Total().Calls
			if calls > 0 && (second+2)%60 == 0 { // the sweep
				sweeps++
			} else if calls > 0 {
				t.Errorf("second %d: %d storage calls, want none: %+v", second, calls, s.Usage())
			}
		}
		if sweeps != 10 {
			t.Errorf("%d sweeps in ten minutes, want 10", sweeps)
		}
	})
}

// What an engine keeps in memory of a store of its own may be wrong, for whatever reason: here another engine changes the store. It
// is right again after a minute.
func TestNoMistakeOutlivesASweep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := memory.New(memory.Options{})
		var engines [2]*queue.Queue
		for i := range engines {
			j := journal.Open(s, journal.Options{Folds: projection.Folds()})
			defer func() { _ = j.Close() }()
			engines[i] = queue.Open(queue.Options{Store: s, Journal: j, Definitions: fixed{set()}})
		}
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		defer group.Wait()
		defer cancel()
		group.Go(func() { engines[0].Run(ctx) })
		synctest.Wait()
		claim := func() int {
			leases, err := engines[0].Claim(ctx, queue.Claimer{}, 1)
			if err != nil {
				t.Error(err)
			}
			return len(leases)
		}
		before := claim()
		if _, err := engines[1].Enqueue(ctx, nil, queue.New{Dialect: task.Job, Job: "/plain"}); err != nil {
			t.Fatal(err)
		}
		behind := claim()
		time.Sleep(time.Minute + time.Second) // of virtual time
		if got := [3]int{before, behind, claim()}; got != [3]int{0, 0, 1} {
			t.Errorf("claims brought %v tasks, want none, none since it is not known, and one after a sweep", got)
		}
	})
}
