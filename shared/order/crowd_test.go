package order_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/millrace/millrace/shared/order"
)

// Changes that share a write may turn out to change the same items, such as the places of a chain.
func TestOrdersThatAreChangedAtOnce(t *testing.T) {
	chain := ab()
	chain.MaxOrders = 3
	onBoth(t, chains(chain), func(t *testing.T, b *bench) {
		const orders = 30
		atOnce := func(do func(i int) error) {
			t.Helper()
			var all sync.WaitGroup
			for i := range orders {
				all.Go(func() {
					if err := do(i); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
		}
		atOnce(func(i int) error {
			_, err := b.Add(t.Context(), nil, order.Request{Chain: "/c", ID: fmt.Sprint(i)})
			return err
		})
		b.events()
		running := 0
		for b.claim() != nil {
			running++
		}
		if running != 3 {
			t.Errorf("%d orders are under way, want 3", running)
		}
		atOnce(func(i int) error {
			return b.Act(t.Context(), "/c", fmt.Sprint(i), order.Act{Kind: order.Remove})
		})
		b.events()
	})
}
