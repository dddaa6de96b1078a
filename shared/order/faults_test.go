package order_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/queue"
)

// Three processes move orders over a bad network: requests and responses are lost, come late and twice, the items of a write become
// visible one by one, and the service throttles. In the end every order has walked to an end, and is told of as it was.
func TestOrdersOverABadNetwork(t *testing.T) {
	overABadNetwork(t, 30*time.Millisecond, func(t *testing.T, n network) {
		chain := ab()
		chain.MaxOrders = 5
		n.walk(t, chains(chain), 20)
	})
}

// toil runs steps until ctx ends. A step whose completion cannot be told is left to its lease's end.
func (p rival) toil(ctx context.Context) {
	for ctx.Err() == nil {
		leases, _ := p.queue.Claim(ctx, queue.Claimer{Instance: "i"}, 1)
		for _, l := range leases {
			for range 5 {
				if _, err := p.queue.Complete(ctx, l.Token, ok); err == nil || errors.Is(err, queue.ErrStale) || errors.Is(err, queue.ErrNoLease) {
					break
				}
			}
		}
		if len(leases) == 0 {
			time.Sleep(100 * time.Millisecond)
		}
	}
}

// tend does what is due until ctx ends.
func (p rival) tend(ctx context.Context) {
	for ctx.Err() == nil {
		_, _ = p.queue.Sweep(ctx)
		_ = p.Sweep(ctx)
		time.Sleep(10 * time.Second)
	}
}

// insist adds an order, with an idempotency key, until that is certain.
func (p rival) insist(t *testing.T, id string) {
	once := &journal.Idempotency{Scope: "test", Key: id}
	for {
		_, err := p.Add(context.Background(), once, order.Request{Chain: "/c", ID: id})
		switch {
		case err == nil:
			return
		case !errors.Is(err, journal.ErrUnavailable) && !errors.Is(err, journal.ErrUnknownOutcome):
			t.Errorf("Add(%s) = %v", id, err)
			return
		}
	}
}

// meddle suspends and resumes orders at random, and sends them elsewhere.
func (p rival) meddle(orders int) {
	acts := []order.Act{{Kind: order.Suspend}, {Kind: order.Resume}, {Kind: order.Skip}, {Kind: order.Reset}, {Kind: order.SetNode, Node: "B"}}
	for range 40 {
		_ = p.Act(context.Background(), "/c", fmt.Sprint(rand.N(orders)), acts[rand.N(len(acts))])
	}
}

// settle resumes all orders until none is left.
func (b *bench) settle(e *order.Engine, orders int) {
	for range 2000 {
		left := 0
		for i := range orders {
			switch err := e.Act(context.Background(), "/c", fmt.Sprint(i), order.Act{Kind: order.Resume}); {
			case errors.Is(err, order.ErrNoOrder):
			default:
				left++
			}
		}
		if left == 0 {
			return
		}
		time.Sleep(time.Second)
	}
	b.t.Errorf("there are still orders")
}
