package order_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/store/meter"
)

// Run does what is due at its time, whatever it has heard of before and after, and does nothing between.
func TestRunDoesWhatIsDueAtItsTime(t *testing.T) {
	t.Parallel()
	chain := ab()
	chain.MaxOrders = 10
	for name, test := range map[string]struct {
		store store.Store
		calls int // in an hour in which nothing is due and four steps run
	}{"alone": {memory.New(memory.Options{}), 1000}, "shared": {shared{memory.New(memory.Options{})}, 2500}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := meter.New(test.store)
				set := &declared{chains(chain)}
				j := journal.Open(m, journal.Options{Folds: projection.Folds()})
				e := order.Open(order.Options{Store: m, Definitions: set, Now: time.Now})
				q := queue.Open(queue.Options{Store: m, Journal: j, Definitions: set, Now: time.Now, Steps: e})
				e.Use(q)
				ctx, end := context.WithCancel(t.Context())
				ran := make(chan struct{})
				go func() { e.Run(ctx); close(ran) }()
				began := time.Now()
				for _, minutes := range []time.Duration{30, 10, 50, 20} { // each waits without a task for its time
					r := order.Request{Chain: "/c", ID: (minutes * time.Minute).String(), RunAt: began.Add(minutes*time.Minute + time.Millisecond)}
					if _, err := e.Add(t.Context(), nil, r); err != nil {
						t.Fatal(err)
					}
				}
				for _, minutes := range []time.Duration{10, 20, 30, 50} {
					time.Sleep(time.Until(began.Add(minutes*time.Minute + 2*time.Millisecond)))
					synctest.Wait()
					leases, err := q.Claim(t.Context(), queue.Claimer{Instance: "i"}, 5)
					if err != nil || len(leases) != 1 || leases[0].Task.Order.ID != (minutes*time.Minute).String() {
						t.Errorf("after %d minutes %d steps can be started, %v, want one", minutes, len(leases), err)
					}
				}
				m.Reset()
				time.Sleep(time.Hour)
				if calls := m.Usage().Total().Calls; calls > test.calls {
					t.Errorf("%d calls in an hour without work, want at most %d", calls, test.calls)
				}
				end()
				<-ran
				_, _ = q.Close(), j.Close()
			})
		})
	}
}
