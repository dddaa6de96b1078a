package queue_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/task"
)

// looked is a store that other processes use too, and that counts what is read of leases.
type looked struct {
	store.Store
	mu     sync.Mutex
	shards int // queries of the items of leases
	tasks  int // tasks that were read
}

func (*looked) Exclusive() bool { return false }

func (l *looked) Query(ctx context.Context, r store.Range) (store.Page, error) {
	if strings.HasPrefix(r.Partition, "lease/") {
		l.mu.Lock()
		l.shards++
		l.mu.Unlock()
	}
	return l.Store.Query(ctx, r)
}

func (l *looked) Get(ctx context.Context, keys ...store.Key) ([]*store.Item, error) {
	l.mu.Lock()
	for i := range keys {
		if strings.HasPrefix(keys[i].Partition, "task/") {
			l.tasks++
		}
	}
	l.mu.Unlock()
	return l.Store.Get(ctx, keys...)
}

func (l *looked) reset() (shards, tasks int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	shards, tasks = l.shards, l.tasks
	l.shards, l.tasks = 0, 0
	return shards, tasks
}

// A process that gives leases which others hear and end reads the items of all leases as often as they may run out, and its own once for
// each time that they seem to.
func TestWhatIsReadOfLeasesThatOthersHear(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &looked{Store: memory.New(memory.Options{})}
		b, other := onClock(t, s), onClock(t, shared{s.Store})
		defer b.journal.Close()
		defer other.journal.Close()
		defer b.Drain()
		w := b.Wait(queue.Claimer{Instance: "idle", Jobs: []string{"/topics/b"}})
		defer w.End()
		for range 20 {
			b.enqueue(queue.New{Dialect: task.Job, Job: "/topics/a", Priority: 1})
		}
		long := b.byInstance(20)
		s.reset()
		const minutes = 5
		for n := range minutes * 60 {
			if n%10 == 0 {
				for _, l := range long {
					if _, err := other.Heartbeat(t.Context(), l.Token, queue.Beat{}); err != nil {
						t.Fatal(err)
					}
				}
			}
			other.enqueue(queue.New{Dialect: task.Job, Job: "/topics/a"})
			other.complete(b.byInstance(1)[0], queue.Result{Outcome: queue.OK})
			time.Sleep(time.Second)
		}
		shards, tasks := s.reset()
		if most := 16 * (minutes*60/15 + 2); shards > most {
			t.Errorf("%d queries of the items of leases, want %d at most", shards, most)
		}
		if most := minutes*60*3 + len(long)*(minutes*60/15+2); tasks > most { // a claim reads its task, and what others have ended is read once
			t.Errorf("%d tasks were read, want %d at most", tasks, most)
		}
	})
}

// A sweep reads no task that was started just now, and others that have no item once, however often it looks.
func TestWhatASweepReadsOfRunningTasks(t *testing.T) {
	t.Parallel()
	base := setupWith(t, ways())
	s := &looked{Store: base.store}
	giver, b := base.another(), base.over(s, base.clock)
	for range 30 {
		giver.one(queue.New{Job: "/long"})
	}
	leases := giver.demandClaim(30, 30, "each is ready")
	sweep := func(want int) {
		t.Helper()
		s.reset()
		if swept, err := b.Sweep(t.Context()); err != nil || swept.Lost > 0 {
			t.Errorf("Sweep = %+v, %v", swept, err)
		}
		if _, tasks := s.reset(); tasks != want {
			t.Errorf("%d tasks were read, want %d", tasks, want)
		}
	}
	base.clock.advance(time.Second) // a start's event is a little later than its time
	sweep(0)
	base.clock.advance(time.Minute)
	sweep(len(leases))
	base.clock.advance(time.Minute)
	sweep(0)
	base.clock.advance(leases[0].Length)
	if swept, err := b.Sweep(t.Context()); err != nil || swept.Lost != len(leases) {
		t.Errorf("Sweep = %+v, %v, want %d lost leases", swept, err, len(leases))
	}
}

// damaged is a store in which no slot can be read.
type damaged struct{ store.Store }

func (*damaged) Exclusive() bool { return false }

func (d *damaged) Query(ctx context.Context, r store.Range) (store.Page, error) {
	if r.Table == store.Journal {
		return store.Page{}, store.ErrDamaged
	}
	return d.Store.Query(ctx, r)
}

// A process that cannot read the journal ends what it has given all the same, and says so.
func TestASweepWithoutTheJournal(t *testing.T) {
	t.Parallel()
	base := setupWith(t, ways())
	b := base.over(&damaged{base.store}, base.clock)
	base.another().one(queue.New{Job: "/plain", Attempts: 2})
	l := b.claim(1)[0]
	base.clock.advance(l.Length)
	if swept, err := b.Sweep(t.Context()); err == nil || swept.Lost != 1 {
		t.Errorf("Sweep = %+v, %v, want a lost lease, and an error", swept, err)
	}
}

// choked is a store that is too busy for one removal.
type choked struct {
	store.Store
	tries int
}

func (*choked) Exclusive() bool { return false }

func (c *choked) Write(ctx context.Context, w store.Write) error {
	if len(w.Ops) == 1 && w.Ops[0].Kind == store.OpDelete {
		c.tries++
		return store.ErrBusy
	}
	return c.Store.Write(ctx, w)
}

// A claim does not insist on the removal of an entry; the next one passes over it.
func TestAnEntryThatCannotBeRemoved(t *testing.T) {
	t.Parallel()
	base := setupWith(t, ways())
	s := &choked{Store: base.store}
	b := base.over(s, base.clock)
	first, second := b.one(queue.New{Job: "/plain"}), b.one(queue.New{Job: "/plain"})
	if l := b.claim(1); len(l) != 1 || l[0].Task.ID != first || s.tries != 1 {
		t.Errorf("claimed %+v after %d tries to remove the entry, want %s after one", l, s.tries, first)
	}
	if l := base.another().claim(1); len(l) != 1 || l[0].Task.ID != second {
		t.Errorf("claimed %+v, want %s", l, second)
	}
}

// held is a store that holds single removals until it is told otherwise.
type held struct {
	store.Store
	on chan struct{}
}

func (*held) Exclusive() bool { return false }

func (h *held) Write(ctx context.Context, w store.Write) error {
	if len(w.Ops) == 1 && w.Ops[0].Kind == store.OpDelete {
		<-h.on
	}
	return h.Store.Write(ctx, w)
}

// Claims that come while a queue is being closed add nothing to what that waits for; the race detector sees it.
func TestAClaimDuringClose(t *testing.T) {
	t.Parallel()
	base := setupWith(t, ways())
	s := &held{base.store, make(chan struct{})}
	j := journal.Open(s, journal.Options{Now: base.clock.now, Folds: projection.Folds()})
	defer j.Close()
	b := *base
	b.Queue = queue.Open(queue.Options{Store: s, Journal: j, Definitions: fixed{ways()}, Now: base.clock.now, Lasting: true})
	b.enqueue(queue.New{Job: "/plain"}, queue.New{Job: "/plain"})
	b.claim(1)
	var closing sync.WaitGroup
	closing.Go(func() { _ = b.Close() })
	close(s.on)
	if l := b.claim(1); len(l) != 1 {
		t.Errorf("claimed %+v, want a task", l)
	}
	closing.Wait()
}

// A process that waits, and does not sweep, ends a lease that it has made an item of itself when that is over, though the alarm went off
// between and nothing else wakes it.
func TestALeaseThatWasMadeAnItemHere(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(b *bench, l queue.Lease) error{
		"a heartbeat": func(b *bench, l queue.Lease) error {
			_, err := b.Heartbeat(b.t.Context(), l.Token, queue.Beat{})
			return err
		},
		"a request to stop": func(b *bench, l queue.Lease) error {
			_, err := b.Stop(b.t.Context(), l.Task.ID)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := onClock(t, shared{memory.New(memory.Options{})})
				defer b.journal.Close()
				defer b.Drain()
				w := b.Wait(queue.Claimer{Instance: "idle", Jobs: []string{"/topics/b"}})
				defer w.End()
				b.enqueue(queue.New{Dialect: task.Job, Job: "/topics/a"})
				first := b.byInstance(1)[0]
				b.complete(first, queue.Result{Outcome: queue.OK})
				time.Sleep(first.Length * 5 / 6)
				b.enqueue(queue.New{Dialect: task.Job, Job: "/topics/a"})
				l := b.byInstance(1)[0]
				time.Sleep(first.Length / 3) // past the alarm of the first
				if err := change(b, l); err != nil {
					t.Fatal(err)
				}
				time.Sleep(l.Length + 2*time.Second)
				if got, err := b.Get(t.Context(), l.Task.ID); err == nil && got.State == task.Running {
					t.Errorf("the task runs still, %v after its lease", time.Since(l.Expires))
				}
			})
		})
	}
}

// unsteady is a set of definitions that cannot be read once, after the store has shown an item of a lease.
type unsteady struct {
	*looked
	armed, fails atomic.Bool
}

func (u *unsteady) Query(ctx context.Context, r store.Range) (store.Page, error) {
	page, err := u.looked.Query(ctx, r)
	if strings.HasPrefix(r.Partition, "lease/") && len(page.Items) > 0 && u.armed.CompareAndSwap(true, false) {
		u.fails.Store(true)
	}
	return page, err
}

func (u *unsteady) Current(context.Context) (*definition.Set, error) {
	if u.fails.CompareAndSwap(true, false) {
		return nil, errors.New("definitions: cannot be read")
	}
	return &definition.Set{}, nil
}

// The end of a lease that fails for a reason of its own is tried again by a process that does not sweep.
func TestAnEndThatFailsIsTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		u := &unsteady{looked: &looked{Store: memory.New(memory.Options{})}}
		b := &bench{t: t, store: u, journal: journal.Open(u, journal.Options{Folds: projection.Folds()})}
		b.Queue = queue.Open(queue.Options{Store: u, Journal: b.journal, Definitions: u})
		defer b.journal.Close()
		defer b.Drain()
		w := b.Wait(queue.Claimer{Instance: "idle", Jobs: []string{"/topics/b"}})
		defer w.End()
		b.enqueue(queue.New{Dialect: task.Job, Job: "/topics/a"})
		l := b.byInstance(1)[0]
		time.Sleep(l.Length / 3)
		if _, err := b.Heartbeat(t.Context(), l.Token, queue.Beat{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(l.Length * 5 / 6)
		u.armed.Store(true) // the next look that sees the lease fails to end it
		time.Sleep(l.Length)
		if got, err := b.Get(t.Context(), l.Task.ID); err != nil || got.State == task.Running || u.armed.Load() {
			t.Errorf("the task is %+v (%v), want it ended at the second try", got, err)
		}
	})
}

// How often a process that runs tasks looks at leases follows from when they run out, and not from how many start.
func TestHowOftenASweepLooks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set   *definition.Set
		lasts int // seconds of each task
	}{
		"the usual lease": {&definition.Set{}, 5},
		"a long one":      {&definition.Set{Lease: 10 * time.Minute}, 45},
		"another's short": {&definition.Set{Jobs: []definition.Job{{Path: "/short", Lease: time.Second}}}, 5},
	} {
		for _, kind := range []string{"alone", "shared"} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					counts := &looked{Store: memory.New(memory.Options{})}
					var s store.Store = counts
					if kind == "alone" {
						s = &lonely{counts}
					}
					b := onClock(t, s)
					b.Queue = queue.Open(queue.Options{Store: s, Journal: b.journal, Definitions: fixed{c.set}})
					defer b.journal.Close()
					ctx, cancel := context.WithCancel(t.Context())
					var group sync.WaitGroup
					defer group.Wait()
					defer cancel()
					group.Go(func() { b.Run(ctx) })
					var running []queue.Lease
					const minutes = 15
					for range 2 * minutes * 60 {
						b.enqueue(queue.New{Dialect: task.Job, Job: "/topics/a"})
						running = append(running, b.byInstance(1)...)
						if len(running) > 2*c.lasts {
							b.complete(running[0], queue.Result{Outcome: queue.OK})
							running = running[1:]
						}
						time.Sleep(time.Second / 2)
					}
					queries, _ := counts.reset()
					if looks := queries / 16; looks > 5*minutes {
						t.Errorf("%d looks at the leases in %d minutes, want %d at most", looks, minutes, 5*minutes)
					}
				})
			})
		}
	}
}

// lonely is a store that no other process uses.
type lonely struct{ *looked }

func (*lonely) Exclusive() bool { return true }

// refused is a store in which one task cannot be read.
type refused struct {
	store.Store
	uuid string
	err  error
}

func (*refused) Exclusive() bool { return false }

func (r *refused) Get(ctx context.Context, keys ...store.Key) ([]*store.Item, error) {
	for i := range keys {
		if r.uuid != "" && keys[i] == layout.TaskKey(r.uuid) {
			return nil, r.err
		}
	}
	return r.Store.Get(ctx, keys...)
}

// Where a task cannot be read, the leases that are read apart from it are ended all the same, whether this process has started it or another.
func TestATaskThatCannotBeReadKeepsNoOther(t *testing.T) {
	t.Parallel()
	const others = 150
	for name, err := range map[string]error{"busy": store.ErrBusy, "damaged": store.ErrDamaged} {
		for _, own := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/own=%v", name, own), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { // the engine waits before it asks a busy store again
					base := setupWith(t, ways())
					time.Sleep(time.Until(base.clock.now())) // the bubble's time begins in 2000, the engine's in 2026
					s := &refused{Store: base.store, err: err}
					b, giver := base.over(s, base.clock), base.another()
					by := giver
					if own {
						by = b
					}
					b.one(queue.New{Job: "/plain", Attempts: 2})
					bad := by.demandClaim(1, 1, "it is ready")[0].Task.ID.UUID()
					for range others {
						giver.one(queue.New{Job: "/plain", Attempts: 2})
					}
					giver.demandClaim(others, others, "each is ready")
					s.uuid = bad
					base.clock.advance(time.Hour)
					const want = others - (layout.AtOnce - 1)
					if swept, err := b.Sweep(t.Context()); err == nil || swept.Lost < want {
						t.Errorf("Sweep = %+v, %v, want %d lost leases, and an error", swept, err, want)
					}
				})
			})
		}
	}
}

// An own task that is damaged keeps no other of those that a process ends which does not sweep.
func TestAnOwnTaskThatIsDamaged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := onClock(t, shared{memory.New(memory.Options{})})
		defer b.journal.Close()
		defer b.Drain()
		w := b.Wait(queue.Claimer{Instance: "idle", Jobs: []string{"/topics/b"}})
		defer w.End()
		b.enqueue(queue.New{Dialect: task.Job, Job: "/topics/a"}, queue.New{Dialect: task.Job, Job: "/topics/a"})
		own := b.byInstance(2)
		damage := store.Put(store.Item{Key: layout.TaskKey(own[0].Task.ID.UUID()), Version: 1_000, Value: []byte("{damaged")}, store.Always)
		if err := b.store.Write(t.Context(), store.Write{Token: "damage", Ops: []store.Op{damage}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(own[1].Length + 2*time.Second)
		if got, err := b.Get(t.Context(), own[1].Task.ID); err != nil || got.State == task.Running {
			t.Errorf("the task is %+v, %v, want it ended", got, err)
		}
	})
}
