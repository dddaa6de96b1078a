package queue_test

import (
	"context"
	"strings"
	"sync"
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
