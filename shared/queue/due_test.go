package queue_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
)

// slowLook is a store whose first query of the due index takes a second.
type slowLook struct {
	store.Store
	once sync.Once
}

func (s *slowLook) Query(ctx context.Context, r store.Range) (store.Page, error) {
	if r.Partition == "due" {
		s.once.Do(func() { time.Sleep(time.Second) }) // of virtual time
	}
	return s.Store.Query(ctx, r)
}

// A due task becomes ready at its time also in a process that begins with a claim, and whose claim still reads the due index when
// Run begins.
func TestAClaimAtTheStartHidesNothingThatIsDue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setupWith(t, ways())
		b.clock.t = time.Now()
		at := time.Now().Add(12 * time.Second)
		b.one(queue.New{Job: "/far", NotBefore: at})
		s := &slowLook{Store: b.store}
		j := journal.Open(s, journal.Options{Folds: projection.Folds()})
		defer func() { _ = j.Close() }()
		q := queue.Open(queue.Options{Store: s, Journal: j, Definitions: fixed{ways()}})
		w := q.Wait(far("w"))
		var group sync.WaitGroup
		group.Go(func() {
			if leases, err := q.Claim(t.Context(), far("w"), 1); err != nil || len(leases) != 0 {
				t.Errorf("Claim = %v, %v, want nothing yet", leases, err)
			}
		})
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		group.Go(func() { q.Run(ctx) })
		<-w.Ready()
		if late := time.Since(at); late != 0 {
			t.Errorf("ready %v after its time", late)
		}
		cancel()
		group.Wait()
	})
}
