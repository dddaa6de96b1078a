package order_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store/faulty"
	"github.com/millrace/millrace/shared/store/memory"
)

// Three processes move orders over a bad network: requests and responses are lost, come late and twice, the items of a write become
// visible one by one, and the service throttles. In the end every order has walked to an end, and is told of as it was.
func TestOrdersOverABadNetwork(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { badNetwork(t, seed) })
		})
	}
}

func badNetwork(t *testing.T, seed uint64) {
	chain := ab()
	chain.MaxOrders = 5
	const orders = 20
	base := shared{memory.New(memory.Options{})}
	service := faulty.NewService(base, faulty.Faults{
		Seed: seed, InTurn: true, There: faulty.Spread{Min: time.Millisecond, Max: 20 * time.Millisecond}, Back: faulty.Spread{Max: 20 * time.Millisecond},
		Timeout: time.Second, LoseRequest: 0.01, LoseAnswer: 0.01, Busy: 0.03, Twice: 0.05, Untold: true, Apart: 30 * time.Millisecond,
	}, nil)
	set := chains(chain)
	processes := make([]rival, 3)
	for i := range processes {
		s := service.Process(fmt.Sprint("p", i))
		j := journal.Open(s, journal.Options{Folds: projection.Folds()})
		e := order.Open(order.Options{Store: s, Definitions: &declared{set}, Now: time.Now})
		q := queue.Open(queue.Options{Store: s, Journal: j, Definitions: &declared{set}, Now: time.Now, Steps: e})
		e.Use(q)
		processes[i] = rival{e, q}
		defer func() { _ = q.Close(); _ = j.Close() }()
	}
	ctx, end := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for _, p := range processes {
		for range 2 {
			group.Go(func() { p.toil(ctx) })
		}
		group.Go(func() { p.tend(ctx) })
	}
	var adding sync.WaitGroup
	for i := range orders {
		adding.Go(func() { processes[i%3].insist(t, fmt.Sprint(i)) })
	}
	for i := range 3 {
		adding.Go(func() { processes[i].meddle(orders) })
	}
	adding.Wait()
	b := open(t, base, set)
	b.settle(processes[0].Engine, orders)
	end()
	group.Wait()
	b.agree()
	b.walked(orders)
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
