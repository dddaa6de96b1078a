package queue_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/task"
)

// expecting is an engine of one process of many, in virtual time.
func expecting(t *testing.T, test func(t *testing.T, b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(t, expectingOver(t, memory.New(memory.Options{Shared: true})))
	})
}

// expectingOver returns an engine on a store.
func expectingOver(t *testing.T, s store.Store) *bench {
	t.Helper()
	b := &bench{t: t, store: s, clock: clockAt(time.Now())}
	b.journal = journal.Open(s, journal.Options{Now: b.clock.now, Folds: projection.Folds()})
	t.Cleanup(func() { _ = b.journal.Close() })
	b.Queue = queue.Open(queue.Options{Store: s, Journal: b.journal, Definitions: fixed{set()}, Now: b.clock.now})
	b.enqueue(queue.New{Dialect: task.Job, Job: "/topics/a"}) // so that its line is known
	b.complete(b.byWaiter()[0], queue.Result{Outcome: queue.OK})
	return b
}

// adding adds a task, and returns a function that returns how long that has taken.
func (b *bench) adding() (took func() time.Duration) {
	began, done := time.Now(), make(chan time.Duration, 1)
	go func() {
		b.enqueue(queue.New{Dialect: task.Job, Job: "/topics/a"})
		done <- time.Since(began)
	}()
	synctest.Wait()
	return func() time.Duration { return <-done }
}

// An addition waits for a wait that is expected, and starts the task for it.
func TestATaskIsStartedForWhoIsExpectedToWait(t *testing.T) {
	t.Parallel()
	expecting(t, func(t *testing.T, b *bench) {
		w := b.Expect(waiter)
		defer w.End()
		if w.Begin(waiter, 1) {
			t.Fatal("a wait has begun for which nobody waits")
		}
		took := b.adding()
		time.Sleep(time.Millisecond) // of virtual time
		if !w.Begin(waiter, 1) {
			t.Fatal("nobody waits for the wait to begin")
		}
		<-w.Ready()
		if leases, _ := given(t, w); len(leases) != 1 || took() != time.Millisecond {
			t.Errorf("%v are started, want the task", leases)
		}
	})
}

// An addition waits no longer than a wait is expected.
func TestAWaitIsExpectedInVain(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		do    func(b *bench, w *queue.Waiting, added func())
		waits time.Duration
	}{
		"it hangs":           {func(_ *bench, _ *queue.Waiting, added func()) { added() }, 20 * ms},
		"it ends":            {func(_ *bench, w *queue.Waiting, added func()) { added(); w.End() }, 0},
		"it ends before":     {func(_ *bench, w *queue.Waiting, added func()) { w.End(); added() }, 0},
		"it comes in 2 ms":   {func(_ *bench, w *queue.Waiting, added func()) { w.Within(2 * ms); added() }, 2 * ms},
		"it came in 2 ms":    {func(_ *bench, w *queue.Waiting, added func()) { w.Within(2 * ms); time.Sleep(3 * ms); added() }, 0},
		"the process stops":  {func(b *bench, _ *queue.Waiting, added func()) { b.Drain(); added() }, 0},
		"it does not at all": {func(_ *bench, w *queue.Waiting, added func()) { added(); w.Within(2 * ms) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expecting(t, func(t *testing.T, b *bench) {
				w := b.Expect(waiter)
				defer w.End()
				var took func() time.Duration
				c.do(b, w, func() { took = b.adding() })
				if waited := took(); waited != c.waits {
					t.Errorf("a task was added after %v, want %v", waited, c.waits)
				}
				if w.Begin(waiter, 1) {
					t.Error("the wait begins after all")
				}
				if ready := b.byWaiter(); len(ready) != 1 {
					t.Errorf("%d tasks are ready, want the one that was added", len(ready))
				}
			})
		})
	}
}

// Who waits already comes before who is expected to, also if it claims by itself; and nobody is woken before there is a task.
func TestWhoWaitsComesBeforeWhoIsExpected(t *testing.T) {
	t.Parallel()
	expecting(t, func(t *testing.T, b *bench) {
		waits := b.Wait(waiter)
		defer waits.End()
		w := b.Expect(waiter)
		defer w.End()
		if took := b.adding()(); took != 0 {
			t.Errorf("a task was added after %v, want at once", took)
		}
		if _, woken := given(t, waits); !woken {
			t.Error("who waits is not woken")
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := &announcing{Store: memory.New(memory.Options{Shared: true}), call: func() {}}
		b := expectingOver(t, s)
		w := b.Expect(waiter)
		took := b.adding()
		waits := b.Wait(waiter)
		defer waits.End()
		s.call = func() {
			if _, woken := given(t, waits); woken {
				t.Error("who waits is woken before the task is there")
			}
		}
		w.End()
		w.End()
		took()
		if _, woken := given(t, waits); !woken {
			t.Error("who waits is not woken")
		}
	})
}

// announcing calls a function before each write of a task.
type announcing struct {
	store.Store
	call func()
}

func (a *announcing) Write(ctx context.Context, w store.Write) error {
	if slices.ContainsFunc(w.Ops, func(op store.Op) bool { return strings.HasPrefix(op.Item.Key.Partition, "task/") }) {
		a.call()
	}
	return a.Store.Write(ctx, w)
}

// panicking panics at the next query, once it is armed.
type panicking struct {
	store.Store
	armed atomic.Bool
}

func (p *panicking) Query(ctx context.Context, r store.Range) (store.Page, error) {
	if p.armed.CompareAndSwap(true, false) {
		panic("query")
	}
	return p.Store.Query(ctx, r)
}

// A panic of an addition does not hold up the wait that it was about to start a task for.
func TestAnAdditionPanicsForWhoIsExpected(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &panicking{Store: memory.New(memory.Options{Shared: true})}
		p := expectingOver(t, s)
		w := p.Expect(waiter)
		defer w.End()
		go func() {
			defer func() { _ = recover() }()
			p.enqueue(queue.New{Dialect: task.Job, Job: "/topics/a"})
		}()
		synctest.Wait()
		s.armed.Store(true)
		if !w.Begin(waiter, 1) {
			t.Fatal("nobody waits for the wait to begin")
		}
		<-w.Ready()
		if leases, _ := given(t, w); len(leases) != 0 {
			t.Errorf("%v are started", leases)
		}
	})
}
