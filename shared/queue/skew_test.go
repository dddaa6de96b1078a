package queue_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	clocks "github.com/millrace/millrace/shared/clock"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/store/meter"
	"github.com/millrace/millrace/shared/task"
)

// compared is another process on a shared store, whose clock is ahead of the store's.
func compared(t *testing.T, on *bench, ahead time.Duration) *bench {
	t.Helper()
	o := &bench{t: t, store: on.store, journal: on.journal}
	o.Queue = queue.Open(queue.Options{
		Store: o.store, Journal: o.journal, Definitions: fixed{set()},
		Clock: clocks.Open(o.store, clocks.Options{Now: func() time.Time { return time.Now().Add(ahead) }}),
	})
	return o
}

func TestAProcessWhoseClockIsOffDecidesNothing(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{15 * time.Minute, 31 * time.Second, -31 * time.Second, -15 * time.Minute} {
		t.Run(ahead.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { besideOneThatIsOff(t, ahead) })
		})
	}
}

func besideOneThatIsOff(t *testing.T, ahead time.Duration) {
	b := &bench{t: t, store: shared{memory.New(memory.Options{})}}
	b.journal = journal.Open(b.store, journal.Options{Folds: projection.Folds()})
	b, off := compared(t, b, 0), compared(t, b, ahead)
	later := time.Now().Add(10 * time.Minute)
	b.enqueue(queue.New{Dialect: task.Job, Job: "/plain"})
	running := b.claim(1)[0]
	b.enqueue(queue.New{Dialect: task.Job, Job: "/plain"}, queue.New{Dialect: task.Job, Job: "/plain", NotBefore: later})
	off.enqueue(queue.New{Dialect: task.Job, Job: "/plain", NotBefore: later})

	refused := func(doing string, err error) {
		t.Helper()
		if _, skewed := errors.AsType[*clocks.Skew](err); !skewed || !errors.Is(err, journal.ErrUnavailable) {
			t.Errorf("%s = %v, want a refusal for the clock", doing, err)
		}
	}
	_, err := off.Sweep(t.Context())
	refused("Sweep", err)
	_, err = off.Promote(t.Context())
	refused("Promote", err)
	_, err = off.Claim(t.Context(), queue.Claimer{Instance: "off"}, 5)
	refused("Claim", err)

	time.Sleep(20 * time.Second)
	if _, err := off.Heartbeat(t.Context(), running.Token, queue.Beat{}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(27 * time.Second)
	if s, err := b.Sweep(t.Context()); err != nil || s.Lost != 0 {
		t.Errorf("a right clock's sweep lost %d leases, %v, after a heartbeat by the process that is off", s.Lost, err)
	}
	if ready := b.claim(5); len(ready) != 1 {
		t.Errorf("%d tasks are ready, want the one that is not for later", len(ready))
	}
	time.Sleep(5 * time.Second)
	if s, err := b.Sweep(t.Context()); err != nil || s.Lost != 1 {
		t.Errorf("a right clock's sweep lost %d leases, %v, want the one that was not heard of", s.Lost, err)
	}
	if err := b.journal.Close(); err != nil {
		t.Error(err)
	}
}

// jumping is a store in which something happens before the leases are read, once, and which may not tell its date.
type jumping struct {
	store.Store
	before func()
	mute   atomic.Bool
}

func (j *jumping) Query(ctx context.Context, r store.Range) (store.Page, error) {
	if do := j.before; do != nil && strings.HasPrefix(r.Partition, "lease/") {
		j.before = nil
		do()
	}
	return j.Store.Query(ctx, r)
}

func (j *jumping) Date(ctx context.Context) (time.Time, error) {
	if j.mute.Load() {
		return time.Time{}, store.ErrUnavailable
	}
	return j.Store.Date(ctx)
}

// A sweep that is held up while its process's clock jumps ends no lease: it goes by the store's date then, which is right to a second only.
func TestASweepEndsNoLeaseAfterAJump(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{t: t, store: shared{memory.New(memory.Options{})}}
		b.journal = journal.Open(b.store, journal.Options{Folds: projection.Folds()})
		b = compared(t, b, 0)
		b.enqueue(queue.New{Dialect: task.Job, Job: "/plain"})
		running := b.claim(1)[0]
		ahead := time.Duration(0)
		s := &jumping{Store: b.store}
		j := journal.Open(s, journal.Options{Folds: projection.Folds()})
		jumps := queue.Open(queue.Options{
			Store: s, Journal: j, Definitions: fixed{set()},
			Clock: clocks.Open(s, clocks.Options{Now: func() time.Time { return time.Now().Add(ahead) }}),
		})
		s.before = func() {
			ahead = 15 * time.Minute
			s.mute.Store(true)
			if _, err := jumps.Promote(t.Context()); err == nil {
				t.Error("after a jump something was decided without the store's date")
			}
			time.Sleep(20 * time.Second)
			if _, err := b.Heartbeat(t.Context(), running.Token, queue.Beat{}); err != nil {
				t.Error(err)
			}
			time.Sleep(29500 * time.Millisecond)
			s.mute.Store(false)
		}
		swept, err := jumps.Sweep(t.Context())
		if _, skewed := errors.AsType[*clocks.Skew](err); !skewed || swept.Lost != 0 {
			t.Errorf("Sweep = %+v, %v, want a refusal for the clock", swept, err)
		}
		b.complete(running, queue.Result{Outcome: queue.OK})
		if err := errors.Join(j.Close(), b.journal.Close()); err != nil {
			t.Error(err)
		}
	})
}

// A process that has the store to itself, and whose clock jumps, ends no lease before its holder had the lease's length to send a
// heartbeat.
func TestALeaseOutlivesAJumpOfTheOnlyClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ahead := time.Duration(0)
		s := memory.New(memory.Options{})
		j := journal.Open(s, journal.Options{Folds: projection.Folds()})
		b := &bench{t: t, store: s, journal: j}
		b.Queue = queue.Open(queue.Options{
			Store: s, Journal: j, Definitions: fixed{set()},
			Clock: clocks.Open(s, clocks.Options{Now: func() time.Time { return time.Now().Add(ahead) }}),
		})
		b.enqueue(queue.New{Dialect: task.Job, Job: "/plain"}, queue.New{Dialect: task.Job, Job: "/plain"})
		leases := b.claim(2)
		time.Sleep(10 * time.Second)
		ahead = 15 * time.Minute
		for n, want := range []int{0, 0, 0, 1} { // one is heard of, the other is not
			if swept, err := b.Sweep(t.Context()); err != nil || swept.Lost != want {
				t.Errorf("%d s after the jump %d leases were lost, %v, want %d", 10*n, swept.Lost, err, want)
			}
			if _, err := b.Heartbeat(t.Context(), leases[0].Token, queue.Beat{}); err != nil {
				t.Error(err)
			}
			time.Sleep(10 * time.Second)
		}
		b.complete(leases[0], queue.Result{Outcome: queue.OK})
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A function's machine sleeps between its invocations, and its monotonic clock with it, so that each sweep sees a jump. The store's
// date says that the clock is right all the same: a lease that is over is ended.
func TestASweepThatSleepsBetweenItsLooksEndsLeases(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asleep := time.Duration(0)
		now := func() time.Time { return time.Now().Add(asleep) }
		s := shared{memory.New(memory.Options{Date: now})}
		j := journal.Open(s, journal.Options{Now: now, Folds: projection.Folds()})
		b := &bench{t: t, store: s, journal: j}
		b.Queue = queue.Open(queue.Options{
			Store: s, Journal: j, Definitions: fixed{set()}, Clock: clocks.Open(s, clocks.Options{Now: now}),
		})
		b.enqueue(queue.New{Dialect: task.Job, Job: "/plain"})
		b.claim(1)
		for n, want := range []int{0, 1, 0} { // the lease lasts for 30 s
			asleep += 20 * time.Second
			if swept, err := b.Sweep(t.Context()); err != nil || swept.Lost != want {
				t.Errorf("sweep %d lost %d leases, %v, want %d", n, swept.Lost, err, want)
			}
		}
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
}

// dateless is a store whose Date fails.
type dateless struct{ store.Store }

// Date fails.
func (dateless) Date(context.Context) (time.Time, error) { return time.Time{}, store.ErrUnavailable }

// A request that is not valid is an ErrInvalid also if the clock's offset is not known.
func TestWhatIsInvalidIsToldWhereTheDateIsNot(t *testing.T) {
	t.Parallel()
	s := dateless{shared{memory.New(memory.Options{})}}
	j := journal.Open(s, journal.Options{Folds: projection.Folds()})
	defer func() { _ = j.Close() }()
	q := queue.Open(queue.Options{Store: s, Journal: j, Definitions: fixed{set()}, Clock: clocks.Open(s, clocks.Options{})})
	n := queue.New{Dialect: task.Job, Job: "/plain", NotBefore: time.Now().Add(time.Hour)}
	if _, err := q.Enqueue(t.Context(), nil, n); !errors.Is(err, journal.ErrUnavailable) {
		t.Errorf("Enqueue = %v, want %v", err, journal.ErrUnavailable)
	}
	n.Attempts = -2
	if _, err := q.Enqueue(t.Context(), nil, n); !errors.Is(err, queue.ErrInvalid) {
		t.Errorf("Enqueue of what is not valid = %v, want %v", err, queue.ErrInvalid)
	}
}

// Comparing the clock costs at most one call of the store a minute.
func TestTheClockCostsACallAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := meter.New(shared{memory.New(memory.Options{})})
		j := journal.Open(m, journal.Options{Folds: projection.Folds()})
		b := &bench{t: t, store: m, journal: j}
		b.Queue = queue.Open(queue.Options{Store: m, Journal: j, Definitions: fixed{set()}, Clock: clocks.Open(m, clocks.Options{})})
		for range 5 * 60 {
			b.enqueue(queue.New{Dialect: task.Job, Job: "/plain"})
			b.complete(b.claim(1)[0], queue.Result{Outcome: queue.OK})
			time.Sleep(time.Second)
		}
		if asked := m.Usage().Date.Calls; asked > 5 {
			t.Errorf("300 tasks in five minutes asked for the date %d times, want 5", asked)
		}
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
}
