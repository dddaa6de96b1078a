package order_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/faulty"
	"github.com/millrace/millrace/shared/store/memory"
)

// network is a store that processes reach over a bad network: requests and responses are lost, come late and twice, the items of a
// write become visible one by one, and the service throttles.
type network struct {
	seed    uint64
	base    store.Store // without the network
	service *faulty.Service
}

// overABadNetwork plays with several seeds. The items of a write become visible within apart of each other.
func overABadNetwork(t *testing.T, apart time.Duration, play func(t *testing.T, n network)) {
	t.Helper()
	t.Parallel()
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				base := shared{memory.New(memory.Options{})}
				play(t, network{seed, base, faulty.NewService(base, faulty.Faults{
					Seed: seed, InTurn: true, There: faulty.Spread{Min: time.Millisecond, Max: 20 * time.Millisecond}, Back: faulty.Spread{Max: 20 * time.Millisecond},
					Timeout: time.Second, LoseRequest: 0.01, LoseAnswer: 0.01, Busy: 0.03, Twice: 0.05, Untold: true, Apart: apart,
				}, nil)})
			})
		})
	}
}

// processes opens an engine in each of three processes.
func (n network) processes(t *testing.T, set *definition.Set) []rival {
	t.Helper()
	all := make([]rival, 3)
	for i := range all {
		all[i] = rivalOn(t, n.service.Process(fmt.Sprint("p", i)), &declared{set}, time.Now)
	}
	return all
}

// walk adds so many orders, and acts on them, while three processes run their steps, and returns when all have walked to an end.
func (n network) walk(t *testing.T, set *definition.Set, orders int) *bench {
	t.Helper()
	processes := n.processes(t, set)
	ctx, end := context.WithCancel(t.Context())
	var group, adding sync.WaitGroup
	for _, p := range processes {
		for range 2 {
			group.Go(func() { p.toil(ctx) })
		}
		group.Go(func() { p.tend(ctx) })
	}
	for i := range orders {
		adding.Go(func() { processes[i%3].insist(t, fmt.Sprint(i)) })
	}
	for i := range 3 {
		adding.Go(func() { processes[i].meddle(orders) })
	}
	adding.Wait()
	b := open(t, n.base, set)
	b.settle(processes[0].Engine, orders)
	end()
	group.Wait()
	b.agree()
	b.walked(orders)
	return b
}
