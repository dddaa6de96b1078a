package queue_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	clocks "github.com/millrace/millrace/shared/clock"
	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/store/meter"
	"github.com/millrace/millrace/shared/task"
)

// onClock returns an engine of a process that goes by the clock of a bubble.
func onClock(t *testing.T, s store.Store) *bench {
	t.Helper()
	b := &bench{t: t, store: s, journal: journal.Open(s, journal.Options{Folds: projection.Folds()})}
	b.Queue = queue.Open(queue.Options{Store: s, Journal: b.journal, Definitions: fixed{&definition.Set{}}})
	return b
}

// TestWhoWaitsHasTheTaskOfADeadInstance: a waiting instance gets it as soon as its lease is over, without a sweep, though other
// processes share the store; and waiting costs no read of the leases while none is over.
func TestWhoWaitsHasTheTaskOfADeadInstance(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := meter.New(shared{memory.New(memory.Options{})})
		b := onClock(t, m)
		defer b.journal.Close()
		defer b.Drain()
		added := b.enqueue(queue.New{Dialect: task.Job, Job: "/topics/a", Attempts: 2, RetryDelay: time.Microsecond})
		dead := b.byInstance(1)[0]

		began := time.Now()
		w := b.Wait(queue.Claimer{Instance: "w/2", Jobs: []string{"/topics/**"}})
		select {
		case <-w.Ready():
		case <-time.After(10 * dead.Length):
			t.Fatal("the waiting instance was not woken")
		}
		if took := time.Since(began); took < dead.Length || took > dead.Length+3*time.Second {
			t.Errorf("the waiting instance was woken after %v, want soon after the lease of %v", took, dead.Length)
		}
		w.Looks()
		again := b.byInstance(1)
		if len(again) != 1 || again[0].Task.ID != added[0].Task.ID || again[0].Task.Attempt != 2 {
			t.Fatalf("claimed %+v, want the second attempt at the task", again)
		}
		b.complete(again[0], queue.Result{Outcome: queue.OK})

		idle := b.Wait(queue.Claimer{Instance: "w/2", Jobs: []string{"/topics/**"}})
		defer idle.End()
		time.Sleep(again[0].Length + 3*time.Second) // the alarm for the lease that is gone has gone off
		m.Reset()
		time.Sleep(time.Minute)
		if u := m.Usage(); u.Total().Calls > 3*60 {
			t.Errorf("a minute of waiting took %d calls of the store, want at most three a second", u.Total().Calls)
		}
	})
}

// TestWhoWaitsHasTheTaskOfAnInstanceThatWasHeardOfLate: a heartbeat in another process comes while the lease is about to be ended; then
// nothing is heard of the instance any more.
func TestWhoWaitsHasTheTaskOfAnInstanceThatWasHeardOfLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &paused{Store: shared{memory.New(memory.Options{})}}
		b, other := onClock(t, p), onClock(t, p.Store)
		defer b.journal.Close()
		defer other.journal.Close()
		defer b.Drain()
		b.enqueue(queue.New{Dialect: task.Job, Job: "/topics/a", Attempts: 2, RetryDelay: time.Microsecond})
		dying := b.byInstance(1)[0]
		p.meanwhile = func() {
			if _, err := other.Heartbeat(t.Context(), dying.Token, queue.Beat{}); err != nil {
				t.Error(err)
			}
		}
		w := b.Wait(queue.Claimer{Instance: "w/2", Jobs: []string{"/topics/**"}})
		began := time.Now()
		select {
		case <-w.Ready():
		case <-time.After(10 * dying.Length):
			t.Fatal("the waiting instance was not woken")
		}
		if took := time.Since(began); p.meanwhile != nil || took < 2*dying.Length || took > 2*dying.Length+3*time.Second {
			t.Errorf("the waiting instance was woken after %v, want soon after twice the lease of %v", took, dying.Length)
		}
		w.Looks()
	})
}

// TestALeaseThatCannotBeReadKeepsNothing: other leases that are over are ended, and who waits is woken for their tasks. It is told of.
func TestALeaseThatCannotBeReadKeepsNothing(t *testing.T) {
	t.Parallel()
	for name, alone := range map[string]bool{"alone": true, "shared": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := store.Store(memory.New(memory.Options{}))
				if !alone {
					s = shared{s}
				}
				b := &bench{t: t, store: s, journal: journal.Open(s, journal.Options{Folds: projection.Folds()})}
				defer b.journal.Close()
				b.Queue = queue.Open(queue.Options{Store: s, Journal: b.journal, Definitions: fixed{&definition.Set{}}})
				defer b.Drain()
				damaged := store.Item{Key: store.Key{Table: store.Work, Partition: "lease/0", Sort: "-"}, Version: 1, Value: []byte("{")}
				if err := s.Write(t.Context(), store.Write{Token: "t", Ops: []store.Op{store.Put(damaged, store.Always)}}); err != nil {
					t.Fatal(err)
				}
				b.enqueue(queue.New{Dialect: task.Job, Job: "/topics/a", Attempts: 2, RetryDelay: time.Microsecond})
				dead := b.byInstance(1)[0]
				w := b.Wait(queue.Claimer{Instance: "w/2", Jobs: []string{"/topics/**"}})
				defer w.End()
				if alone {
					ctx, cancel := context.WithCancel(t.Context())
					var group sync.WaitGroup
					defer group.Wait()
					defer cancel()
					group.Go(func() { b.Run(ctx) })
				}
				select {
				case <-w.Ready():
				case <-time.After(dead.Length + 5*time.Second):
					t.Error("the waiting instance was not woken")
				}
				if swept, err := b.Sweep(t.Context()); err == nil || swept.Lost != 0 {
					t.Errorf("Sweep = %+v, %v, want an error for the lease that cannot be read", swept, err)
				}
			})
		})
	}
}

// slowRanges is a shared store whose reads of ranges take a while, whatever becomes of their context.
type slowRanges struct {
	store.Store
	reads atomic.Int64 // under way
}

func (s *slowRanges) Exclusive() bool { return false }

func (s *slowRanges) Query(ctx context.Context, r store.Range) (store.Page, error) {
	s.reads.Add(1)
	defer s.reads.Add(-1)
	time.Sleep(time.Second / 2)
	return s.Store.Query(ctx, r)
}

func TestCloseWaitsForTheLookOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &slowRanges{Store: memory.New(memory.Options{})}
		j := journal.Open(s, journal.Options{Folds: projection.Folds()})
		defer j.Close()
		q := queue.Open(queue.Options{Store: s, Journal: j, Definitions: fixed{&definition.Set{}}})
		w := q.Wait(queue.Claimer{Instance: "w/1", Jobs: []string{"/topics/**"}})
		time.Sleep(5 * time.Second / 4)
		if s.reads.Load() == 0 {
			t.Fatal("nobody looks for tasks that other processes make ready")
		}
		if err := q.Close(); err != nil || s.reads.Load() != 0 {
			t.Errorf("Close = %v, with %d reads under way", err, s.reads.Load())
		}
		if <-w.Ready(); w.Looks() {
			t.Error("the wait goes on after Close")
		}
	})
}

// dated is a store that other processes share and whose date is behind this process's clock for a while.
type dated struct {
	shared
	behind atomic.Int64 // nanoseconds
}

func (d *dated) Date(context.Context) (time.Time, error) {
	return time.Now().Add(-time.Duration(d.behind.Load())), nil
}

// TestAClockThatIsOffIsLoggedNowAndThen: when looks begin to fail, each ten minutes while they do, and when that is over.
func TestAClockThatIsOffIsLoggedNowAndThen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &dated{shared: shared{memory.New(memory.Options{})}}
		j := journal.Open(s, journal.Options{Folds: projection.Folds()})
		defer j.Close()
		var logs bytes.Buffer
		q := queue.Open(queue.Options{
			Store: s, Journal: j, Definitions: fixed{&definition.Set{}}, Clock: clocks.Open(s, clocks.Options{}),
			Log: slog.New(slog.NewTextHandler(&logs, nil)),
		})
		if _, err := q.Enqueue(t.Context(), nil, queue.New{Dialect: task.Job, Job: "/topics/a", NotBefore: time.Now().Add(time.Second)}); err != nil {
			t.Fatal(err)
		}
		w := q.Wait(queue.Claimer{Instance: "w/1", Jobs: []string{"/topics/b"}})
		defer w.End()
		time.Sleep(5 * time.Minute)
		s.behind.Store(int64(time.Hour))
		time.Sleep(25 * time.Minute)
		s.behind.Store(0)
		time.Sleep(5 * time.Minute)
		if err := q.Close(); err != nil { // the look-out writes to the log
			t.Fatal(err)
		}
		late, again := strings.Count(logs.String(), "may be found late"), strings.Count(logs.String(), "in time again")
		if late != 3 || again != 1 {
			t.Errorf("25 minutes of a clock that is off: %d warnings, %d times over, want 3 and 1:\n%.2000s", late, again, &logs)
		}
	})
}

// A process that waits does not write to find out that others have ended what it has given.
func TestWhatOthersHaveEndedIsNotWrittenFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		counted := &writes{Store: shared{memory.New(memory.Options{})}}
		b, other := onClock(t, counted), onClock(t, counted.Store)
		defer b.journal.Close()
		defer other.journal.Close()
		defer b.Drain()
		b.enqueue(queue.New{Dialect: task.Job, Job: "/topics/a"})
		l := b.byInstance(1)[0]
		other.complete(l, queue.Result{Outcome: queue.OK})
		w := b.Wait(queue.Claimer{Instance: "w/2", Jobs: []string{"/topics/**"}})
		defer w.End()
		before := counted.calls.Load()
		time.Sleep(l.Length + 3*time.Second)
		if n := counted.calls.Load() - before; n != 0 {
			t.Errorf("%d writes, want none", n)
		}
	})
}
