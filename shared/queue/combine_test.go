package queue_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/groupcommit"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
)

// gated is a store whose writes wait at a gate while it is shut, and that notes what is read.
type gated struct {
	store.Store
	open chan struct{} // nil: there is no gate

	mu   sync.Mutex
	read map[store.Key]int
}

func (g *gated) Write(ctx context.Context, w store.Write) error {
	if g.open != nil {
		<-g.open
	}
	return g.Store.Write(ctx, w)
}

func (g *gated) Get(ctx context.Context, keys ...store.Key) ([]*store.Item, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, key := range keys {
		g.read[key]++
	}
	return g.Store.Get(ctx, keys...)
}

// TestOneThatLosesKeepsNoOtherWaiting: of ends that share a write, one is of an attempt that another process has ended meanwhile. That one
// is read again, the others are written at the second try as they were.
func TestOneThatLosesKeepsNoOtherWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const n = 9
		data := memory.New(memory.Options{})
		g := &gated{Store: shared{data}, read: map[store.Key]int{}}
		open := func(s store.Store) *bench {
			b := &bench{t: t, store: s}
			b.journal = journal.Open(s, journal.Options{Folds: projection.Folds()})
			b.Queue = queue.Open(queue.Options{Store: s, Journal: b.journal, Definitions: fixed{set()}})
			return b
		}
		b, other := open(g), open(shared{data})
		defer func() { _, _ = b.journal.Close(), other.journal.Close() }()
		b.enqueue(slices.Repeat([]queue.New{{Job: "/plain"}}, n)...)
		leases := b.claim(n)
		if err := other.Drop(t.Context(), leases[n-1].Task.ID); err != nil {
			t.Fatal(err)
		}

		g.open = make(chan struct{})
		clear(g.read)
		var group sync.WaitGroup
		for i, l := range leases { // two writes are under way, and the others wait
			group.Go(func() {
				_, err := b.Complete(t.Context(), l.Token, queue.Result{Outcome: queue.OK})
				if gone := errors.Is(err, queue.ErrStale) || errors.Is(err, queue.ErrNoLease); gone != (i == n-1) || !gone && err != nil {
					t.Errorf("end %d = %v", i, err)
				}
			})
			synctest.Wait()
		}
		close(g.open)
		group.Wait()
		for i, l := range leases {
			if times := g.read[layout.TaskKey(l.Task.ID.UUID())]; (times > 0) != (i == n-1) {
				t.Errorf("task %d was read %d times", i, times)
			}
		}
	})
}

// stuck is a shared store of which one write of the journal hangs until its context ends.
type stuck struct {
	shared
	next atomic.Bool // the next one hangs
}

func (s *stuck) Write(ctx context.Context, w store.Write) error {
	if len(w.Ops) > 1 && s.next.CompareAndSwap(true, false) {
		<-ctx.Done()
		return store.ErrUnknown
	}
	return s.shared.Write(ctx, w)
}

// What is asked for soon after a write that hangs does not wait for its end, however often the process writes and even if nothing comes
// after it.
func TestAWriteThatHangsKeepsNobodyElse(t *testing.T) {
	t.Parallel()
	for _, before := range []int{10, 100} {
		synctest.Test(t, func(t *testing.T) {
			s := &stuck{shared: shared{memory.New(memory.Options{})}}
			b := on(t, s)
			defer func() { _ = b.journal.Close() }()
			for range before {
				b.one(queue.New{Job: "/plain"})
				time.Sleep(10 * time.Millisecond)
			}
			s.next.Store(true)
			var group sync.WaitGroup
			group.Go(func() { b.one(queue.New{Job: "/plain"}) })
			synctest.Wait()
			time.Sleep(10 * time.Millisecond)
			began := time.Now()
			b.one(queue.New{Job: "/plain"})
			if took := time.Since(began); took > groupcommit.Slow {
				t.Errorf("after %d writes an addition beside a write that hangs took %v", before, took)
			}
			group.Wait()
		})
	}
}

// A start that shares a write with what loses again and again has a lease that lasts from about when it is written.
func TestAStartThatIsWrittenLateHasItsLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &gated{Store: shared{memory.New(memory.Options{})}, read: map[store.Key]int{}}
		b := on(t, g)
		defer func() { _ = b.journal.Close() }()
		for range 5 {
			b.one(queue.New{Job: "/plain"})
		}
		g.open = make(chan struct{})
		var group sync.WaitGroup
		for range 2 { // two writes are under way
			group.Go(func() { b.one(queue.New{Job: "/plain"}) })
			synctest.Wait()
		}
		tries, at := 0, layout.Key("x", "x")
		group.Go(func() {
			if err := b.Change(t.Context(), []string{"x"}, func(context.Context, *store.Conflict) (queue.Follow, error) {
				if tries++; tries <= 21 {
					return queue.Follow{Ops: []store.Op{store.Check(at, store.VersionIs(7))}}, nil
				}
				return queue.Follow{Ops: []store.Op{store.Check(at, store.Absent)}}, nil
			}); err != nil {
				t.Error(err)
			}
		})
		group.Go(func() {
			began := time.Now()
			leases := b.claim(1)
			if len(leases) != 1 {
				t.Fatalf("%d tasks were started", len(leases))
			}
			if took := time.Since(began); took < 3*time.Second {
				t.Fatalf("the claim took %v, want what shares its write to lose for longer", took)
			}
			if left := time.Until(leases[0].Expires); left < leases[0].Length-2*time.Second {
				t.Errorf("of a lease of %v, %v are left when it is given", leases[0].Length, left)
			}
		})
		synctest.Wait()
		close(g.open)
		group.Wait()
	})
}

// A start that has waited for two writes that hang has its lease from about when it is written.
func TestAStartThatHasWaitedHasItsLease(t *testing.T) {
	t.Parallel()
	for _, next := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			g := &gated{Store: shared{memory.New(memory.Options{})}, read: map[store.Key]int{}}
			b := on(t, g)
			defer func() { _ = b.journal.Close() }()
			for range 5 {
				b.one(queue.New{Job: "/plain"})
			}
			first := b.claim(1)[0]
			g.open = make(chan struct{})
			var group sync.WaitGroup
			for range 2 { // two writes are under way
				group.Go(func() { b.one(queue.New{Job: "/plain"}) })
				synctest.Wait()
			}
			group.Go(func() {
				var leases []queue.Lease
				var err error
				if next {
					_, leases, err = b.CompleteAndClaim(t.Context(), first.Token, queue.Result{Outcome: queue.OK}, queue.Claimer{Instance: "i"}, 1)
				} else {
					leases, err = b.Claim(t.Context(), queue.Claimer{Instance: "i"}, 1)
				}
				if err != nil || len(leases) != 1 {
					t.Error(err, len(leases))
					return
				}
				if left := time.Until(leases[0].Expires); left < leases[0].Length-2*time.Second {
					t.Errorf("next %v: of a lease of %v, %v are left when it is given", next, leases[0].Length, left)
				}
			})
			synctest.Wait()
			time.Sleep(9 * time.Second)
			close(g.open)
			group.Wait()
		})
	}
}
