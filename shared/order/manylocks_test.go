package order_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/order"
)

// TestManyLocksAtOnce: orders that hold as many locks as a node may name, and give them to others that want all of them, or
// each another one with further locks of its own, fit into their writes.
func TestManyLocksAtOnce(t *testing.T) {
	all := func(from, to int) (locks []definition.NodeLock) {
		for i := from; i < to; i++ {
			locks = append(locks, definition.NodeLock{Name: fmt.Sprintf("l%03d", i)})
		}
		return locks
	}
	chain := func(path string, locks ...[]definition.NodeLock) definition.JobChain {
		c := definition.JobChain{Path: path}
		for i, l := range locks {
			c.Nodes = append(c.Nodes, definition.Node{ID: fmt.Sprint("L", i), Job: "/j", Locks: l})
		}
		c.Nodes = append(c.Nodes, definition.Node{ID: "end"})
		return c
	}
	set := chains()
	set.JobChains = append(set.JobChains, chain("/c", all(0, 8), all(8, 16), all(0, 8)))
	for i := range 8 { // that want one of the first locks, and seven others
		set.JobChains = append(set.JobChains, chain(fmt.Sprint("/d", i), append(all(i, i+1), all(100+10*i, 107+10*i)...)))
	}
	fork := definition.Node{ID: "F", Fork: &definition.Fork{Branches: map[string][]definition.Node{}}}
	for i := range 12 {
		fork.Fork.Branches[fmt.Sprint(i)] = []definition.Node{{Job: "/j", Locks: all(200+10*i, 208+10*i)}}
	}
	set.JobChains = append(set.JobChains, definition.JobChain{Path: "/f", Nodes: []definition.Node{fork, {ID: "end"}}})
	for i := range 400 {
		set.Locks = append(set.Locks, definition.Lock{Name: fmt.Sprintf("l%03d", i)})
	}
	for _, remove := range []bool{false, true} {
		t.Run(fmt.Sprint(remove), func(t *testing.T) {
			onBoth(t, set, func(t *testing.T, b *bench) {
				for i := range 4 {
					b.on("/c", fmt.Sprint(i))
					for n := range 8 {
						b.on(fmt.Sprint("/d", n), fmt.Sprint(i))
					}
				}
				b.on("/f", "1")
				b.sweep()
				if remove {
					for _, path := range []string{"/c,0", "/c,1", "/f,1"} {
						chain, id := order.Split(path)
						if err := b.Act(t.Context(), chain, id, order.Act{Kind: order.Remove}); err != nil {
							t.Error(err)
						}
					}
				}
				b.work(succeed)
				b.now = b.now.Add(time.Minute)
				b.work(succeed)
				if left := b.orders(); len(left) > 0 {
					t.Errorf("left: %v", left)
				}
				b.nothingLeft()
			})
		})
	}
}

// orders returns the paths of all orders, as their events say.
func (b *bench) orders() (paths []string) {
	b.t.Helper()
	_, err := b.journal.Snapshot(b.t.Context(), "OrderOverview", func(key string, value []byte) {
		if len(value) > 0 {
			paths = append(paths, key)
		}
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return paths
}
