package queue_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
)

// ways is a set with a queue of each kind.
func ways() *definition.Set {
	s := set()
	for _, path := range []string{"/fair/a", "/fair/b", "/fair/c"} {
		s.Jobs = append(s.Jobs, definition.Job{Path: path, Target: definition.Target{Go: "f"}, Queue: "fair"})
	}
	s.Jobs = append(s.Jobs, definition.Job{Path: "/far", Queue: "main"}, definition.Job{Path: "/long", Target: definition.Target{Go: "f"}, Lease: time.Hour})
	s.Queues = append(s.Queues, definition.Queue{
		Name: "fair", Type: definition.RoundRobin, Weights: map[string]int{"/fair/a": 3, "/fair/b": 2},
	})
	return s
}

func setupWith(t *testing.T, set *definition.Set) *bench {
	t.Helper()
	b := &bench{t: t, store: memory.New(memory.Options{}), clock: clockAt(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))}
	b.journal = journal.Open(b.store, journal.Options{Now: b.clock.now, Folds: projection.Folds()})
	b.Queue = queue.Open(queue.Options{Store: b.store, Journal: b.journal, Definitions: fixed{set}, Now: b.clock.now})
	return b
}

// writes counts the calls of Write.
type writes struct {
	store.Store
	calls atomic.Int64
}

// Write counts, unless an entry is removed that nobody needs any more.
func (w *writes) Write(ctx context.Context, request store.Write) error {
	if len(request.Ops) > 1 || request.Ops[0].Kind != store.OpDelete {
		w.calls.Add(1)
	}
	return w.Store.Write(ctx, request)
}
