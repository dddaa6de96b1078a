package queue_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/rule"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/task"
)

// fixed is a set of definitions that never changes.
type fixed struct{ set *definition.Set }

func (f fixed) Current(context.Context) (*definition.Set, error) { return f.set, nil }

// clock is a clock that tests set.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func clockAt(t time.Time) *clock { return &clock{t: t} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// bench is an engine with its store, journal and clock.
type bench struct {
	*queue.Queue
	t       *testing.T
	store   store.Store
	journal *journal.Journal
	clock   *clock
}

func set() *definition.Set {
	return &definition.Set{
		Sources: map[string]definition.Source{"S": {
			Target: definition.Target{Go: "f"}, Collections: []definition.Collection{{Name: "A"}, {Name: "B"}, {Name: "C"}},
		}},
		Handlers: []definition.Handler{
			{Canvas: "c", Space: "WORKER", Name: "x", Target: definition.Target{Go: "f"}},
			{Canvas: "c", Space: "WORKER", Name: "y", Target: definition.Target{Go: "f"}},
		},
		Jobs: []definition.Job{
			{Path: "/plain", Target: definition.Target{Go: "f"}},
			{Path: "/strict", Target: definition.Target{Go: "f"}, Queue: "strict", Attempts: 2, RetryDelay: time.Minute},
			{Path: "/few", Target: definition.Target{Go: "f"}, Queue: "few"},
			{Path: "/timed", Target: definition.Target{Go: "f"}, Timeout: time.Second},
		},
		Queues: []definition.Queue{{Name: "strict", Type: definition.Ordered}, {Name: "few", MaxParallel: 2}},
	}
}

func setup(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, store: memory.New(memory.Options{}), clock: clockAt(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))}
	b.journal = journal.Open(b.store, journal.Options{Now: b.clock.now, Folds: projection.Folds()})
	b.Queue = queue.Open(queue.Options{Store: b.store, Journal: b.journal, Definitions: fixed{set()}, Now: b.clock.now})
	return b
}

func (b *bench) enqueue(news ...queue.New) []queue.Added {
	b.t.Helper()
	e, err := b.Enqueue(b.t.Context(), nil, news...)
	if err != nil {
		b.t.Fatal(err)
	}
	return e.Tasks
}

func (b *bench) claim(n int) []queue.Lease {
	b.t.Helper()
	leases, err := b.Claim(b.t.Context(), queue.Claimer{Instance: "i"}, n)
	if err != nil {
		b.t.Fatal(err)
	}
	return leases
}

func (b *bench) complete(l queue.Lease, r queue.Result) task.State {
	b.t.Helper()
	s, err := b.Complete(b.t.Context(), l.Token, r)
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// demandClaim ends the test unless a claim of up to max tasks starts want.
func (b *bench) demandClaim(max, want int, why string) []queue.Lease {
	b.t.Helper()
	leases := b.claim(max)
	if len(leases) != want {
		b.t.Fatalf("a claim started %d tasks, want %d: %s", len(leases), want, why)
	}
	return leases
}

// TestSmoke leads tasks through all that the engine does, once.
func TestSmoke(t *testing.T) {
	b := setup(t)
	for i := range 5 {
		b.enqueue(queue.New{Dialect: task.Job, Job: "/plain", Priority: int64(i), Payload: []byte(fmt.Sprint(i))})
	}
	for i := 4; i >= 0; i-- {
		l := b.claim(1)
		if len(l) != 1 || string(l[0].Task.Payload) != fmt.Sprint(i) {
			t.Fatalf("claim = %+v, want %d", l, i)
		}
		if s := b.complete(l[0], queue.Result{Outcome: queue.OK}); s != task.Succeeded {
			t.Fatalf("task %d is %s after it ended well, want %s", i, s, task.Succeeded)
		}
	}
	b.demandClaim(1, 0, "all have run")
	// delay
	b.enqueue(queue.New{Dialect: task.Job, Job: "/plain", NotBefore: b.clock.now().Add(time.Hour)})
	b.demandClaim(1, 0, "it is not due")
	b.clock.advance(time.Hour)
	l := b.demandClaim(1, 1, "it is due")
	b.clock.advance(time.Minute)
	if s, err := b.Sweep(t.Context()); err != nil || s.Lost != 1 {
		t.Fatalf("a sweep found %d lost tasks, %v, want 1", s.Lost, err)
	}
	if _, err := b.Complete(t.Context(), l[0].Token, queue.Result{Outcome: queue.OK}); !errors.Is(err, queue.ErrStale) {
		t.Fatalf("Complete = %v after the lease ran out, want %v", err, queue.ErrStale)
	}
	// unique
	n := queue.New{Dialect: task.Sync, Job: "/sources/S/A", Group: "/sources/S", Prefix: "S_A_", Unique: "sync", Priority: 300}
	first := b.enqueue(n)[0]
	second := b.enqueue(n)[0]
	if first.Existing || !second.Existing || second.Task.ID != first.Task.ID {
		t.Fatalf("enqueued under one unique key: %+v and %+v, want one task", first, second)
	}
	b.complete(b.claim(1)[0], queue.Result{Outcome: queue.Failed})
	if third := b.enqueue(n)[0]; third.Existing {
		t.Fatalf("enqueued %+v, want a new task: the unique key is free", third)
	}
	// rules
	if err := b.SetRule(t.Context(), "/sources/S/A", rule.Pause, true); err != nil {
		t.Fatal(err)
	}
	b.demandClaim(1, 0, "it is paused")
	if err := b.SetRule(t.Context(), "/sources/S/A", rule.Pause, false); err != nil {
		t.Fatal(err)
	}
	b.demandClaim(1, 1, "it is not paused any more")
	// limit
	for range 3 {
		b.enqueue(queue.New{Dialect: task.Job, Job: "/few"})
	}
	few := b.demandClaim(5, 2, "that is the limit")
	b.complete(few[0], queue.Result{Outcome: queue.OK})
	b.demandClaim(5, 1, "one place is free")
	if _, err := b.Counts(t.Context(), "/"); err != nil {
		t.Errorf("Counts = %v", err)
	}
}
