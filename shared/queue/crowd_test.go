package queue_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/rule"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
)

// stalled is a shared store whose reads of ready entries wait while it is stalled, until they are let go one by one, and then find none.
type stalled struct {
	shared
	is   atomic.Bool
	next chan struct{}
}

func (s *stalled) Query(ctx context.Context, r store.Range) (store.Page, error) {
	if s.is.Load() && strings.HasPrefix(r.Partition, "ready") {
		<-s.next
		return store.Page{}, nil
	}
	return s.shared.Query(ctx, r)
}

// on opens an engine on a store, whose pauses are always half as long as they may be.
func on(t *testing.T, s store.Store) *bench {
	t.Helper()
	b := &bench{t: t, store: s, journal: journal.Open(s, journal.Options{
		Folds: projection.Folds(), Jitter: func(most time.Duration) time.Duration { return most / 2 },
	})}
	b.Queue = queue.Open(queue.Options{Store: s, Journal: b.journal, Definitions: fixed{set()}})
	return b
}

// Claims that are made as one go by the newest rules that one of them has read: none starts what was paused before it began, however long
// those before it have waited.
func TestClaimsThatAreMadeAsOneGoByTheNewestRules(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		data := memory.New(memory.Options{})
		s := &stalled{shared: shared{data}, next: make(chan struct{})}
		b, other := on(t, s), on(t, shared{data})
		defer func() { _, _ = b.journal.Close(), other.journal.Close() }()
		for range 40 {
			other.one(queue.New{Job: "/plain"})
		}
		s.is.Store(true)
		var group sync.WaitGroup
		started := make([]int, 6)
		claim := func(i int) {
			group.Go(func() {
				leases, err := b.Claim(t.Context(), queue.Claimer{Instance: "i"}, 3)
				if err != nil {
					t.Error(err)
				}
				started[i] = len(leases)
			})
			synctest.Wait()
		}
		for i := range 5 { // four are made at once, which find nothing, and the fifth waits
			claim(i)
		}
		other.rule("/plain", rule.Pause)
		time.Sleep(300 * time.Millisecond)
		claim(5)
		s.is.Store(false)
		s.next <- struct{}{} // the two that wait are made as one
		synctest.Wait()
		close(s.next)
		group.Wait()
		if started[5] > 0 {
			t.Errorf("claims started %v tasks, want none by the last, which began after the job was paused", started)
		}
	})
}
