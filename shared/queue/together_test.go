package queue_test

import (
	"context"
	"errors"
	"fmt"
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
)

// slowSlots is a store in which reading the slots of the instance "slow" takes a minute.
type slowSlots struct{ store.Store }

func (s slowSlots) Query(ctx context.Context, r store.Range) (store.Page, error) {
	if strings.HasPrefix(r.Partition, "permit/") && strings.HasSuffix(r.Partition, "/slow") {
		time.Sleep(time.Minute) // of virtual time
	}
	return s.Store.Query(ctx, r)
}

// While a claim of an instance takes long, other claims of that instance leave when their contexts end, and get what is ready
// otherwise; claims of other instances, however many, do not wait for it.
func TestAClaimWaitsForItsInstanceOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := slowSlots{memory.New(memory.Options{})}
		j := journal.Open(s, journal.Options{Folds: projection.Folds()})
		defer func() { _ = j.Close() }()
		q := queue.Open(queue.Options{Store: s, Journal: j, Definitions: fixed{set()}})
		claim := func(ctx context.Context, instance string) ([]queue.Lease, error) {
			return q.Claim(ctx, queue.Claimer{Instance: instance, Capacity: 5}, 1)
		}
		var group sync.WaitGroup
		defer group.Wait()
		group.Go(func() {
			if leases, err := claim(t.Context(), "slow"); err != nil || len(leases) != 1 {
				t.Errorf("the slow claim = %d leases, %v, want one", len(leases), err)
			}
		})
		synctest.Wait()
		began := time.Now()
		for i := range 1000 {
			group.Go(func() {
				if _, err := claim(t.Context(), fmt.Sprint(i)); err != nil || time.Since(began) > time.Second {
					t.Errorf("the claim of instance %d took %v, %v, want none to wait", i, time.Since(began), err)
				}
			})
		}
		group.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := claim(ctx, "slow"); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
				t.Errorf("a claim with a second's patience = %v after %v", err, time.Since(began))
			}
		})
		group.Go(func() {
			time.Sleep(2 * time.Second)
			if _, err := q.Enqueue(t.Context(), nil, queue.New{Job: "/plain"}, queue.New{Job: "/plain"}); err != nil {
				t.Error(err)
			}
			if leases, err := claim(t.Context(), "slow"); err != nil || len(leases) != 1 {
				t.Errorf("the claim after the slow one = %d leases, %v, want one", len(leases), err)
			}
		})
	})
}
