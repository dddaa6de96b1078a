package queue_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
)

// sized notes how many bytes of values the largest write has.
type sized struct {
	store.Store
	most atomic.Int64
}

// Write notes the size.
func (s *sized) Write(ctx context.Context, w store.Write) error {
	size := int64(0)
	for i := range w.Ops {
		size += int64(len(w.Ops[i].Item.Value))
	}
	if size > s.most.Load() {
		s.most.Store(size)
	}
	return s.Store.Write(ctx, w)
}

// Tasks whose texts are as large as they may be are started by as many writes as their bytes take, however many operations a write holds.
func TestAClaimOfLargeTasksFitsInItsWrites(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]memory.Options{"alone": {MaxOps: 600}, "shared": {MaxOps: 600, Shared: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupWith(t, ways())
			s := &sized{Store: memory.New(o)}
			b.store = s
			b.journal = journal.Open(s, journal.Options{Now: b.clock.now, Folds: projection.Folds()})
			t.Cleanup(func() { _ = b.journal.Close() })
			b.Queue = queue.Open(queue.Options{Store: s, Journal: b.journal, Definitions: fixed{ways()}, Now: b.clock.now})
			const tasks = 98
			for range tasks {
				b.one(queue.New{Job: "/plain", Modifier: strings.Repeat("m", queue.MaxTexts-1000)})
			}
			s.most.Store(0)
			by := queue.Claimer{Instance: "i", Capacity: tasks}
			leases, err := b.Claim(t.Context(), by, tasks)
			for more := leases; err == nil && len(more) > 0; leases = append(leases, more...) {
				more, err = b.Claim(t.Context(), by, tasks-len(leases))
			}
			if err != nil || len(leases) != tasks {
				t.Errorf("%d tasks were started, %v, want %d", len(leases), err, tasks)
			}
			if most := s.most.Load(); most > 1<<20+64<<10 {
				t.Errorf("a write has %d bytes, want about 1 MiB at most", most)
			}
		})
	}
}
