package order_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
)

// lockedBranches is a chain /c that forks into so many branches 1, 2 …, whose last steps all want the same lock.
func lockedBranches(branches int, before bool, change func(fork *definition.Node, l *definition.NodeLock)) *definition.Set {
	fork := definition.Node{ID: "F", Fork: &definition.Fork{Branches: map[string][]definition.Node{}}, Next: "end", Error: "end"}
	l := definition.NodeLock{Name: "a"}
	change(&fork, &l)
	for i := range branches {
		nodes := []definition.Node{{ID: fmt.Sprint("L", i+1), Job: "/j", Locks: []definition.NodeLock{l, {Name: "db", Shared: true}}}}
		if before {
			nodes = append([]definition.Node{{ID: fmt.Sprint("J", i+1), Job: "/j"}}, nodes...)
		}
		fork.Fork.Branches[fmt.Sprint(i+1)] = nodes
	}
	set := chains(definition.JobChain{Path: "/c", Nodes: []definition.Node{fork, {ID: "end"}}})
	set.Locks = []definition.Lock{{Name: "a"}, {Name: "db"}}
	return set
}

// lockedForks are forks whose children want the same lock.
var lockedForks = map[string]func(*definition.Node, *definition.NodeLock){
	"alone":        func(*definition.Node, *definition.NodeLock) {},
	"shared":       func(_ *definition.Node, l *definition.NodeLock) { l.Shared = true },
	"alone/cancel": func(n *definition.Node, _ *definition.NodeLock) { n.Fork.OnFailed = definition.FailedCancels },
	"shared/cancel": func(n *definition.Node, l *definition.NodeLock) {
		l.Shared, n.Fork.OnFailed = true, definition.FailedCancels
	},
}

// free demands that nobody holds the locks, and nobody waits for them.
func (b *bench) free(names ...string) {
	b.t.Helper()
	for _, name := range names {
		for _, partition := range []string{"lock-holders/" + name, "lock-line/" + name} {
			page, err := b.store.Query(b.t.Context(), store.Range{Table: store.Work, Partition: partition})
			if err != nil {
				b.t.Fatal(err)
			}
			for _, item := range page.Items {
				b.t.Errorf("left: %s %s", partition, item.Value)
			}
		}
		items, err := b.store.Get(b.t.Context(), store.Key{Table: store.Work, Partition: "lock/" + name, Sort: "-"})
		if err != nil {
			b.t.Fatal(err)
		}
		var left struct {
			A    bool
			S, W int
		}
		if items[0] != nil && (json.Unmarshal(items[0].Value, &left) != nil || left.A || left.S+left.W != 0) {
			b.t.Errorf("the lock %s is %s", name, items[0].Value)
		}
	}
}

// TestChildrenWithTheSameLock: what the children made, or ended, in one write take and give back is one change of the lock.
func TestChildrenWithTheSameLock(t *testing.T) {
	for name, change := range lockedForks {
		for _, before := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " ", before), func(t *testing.T) {
				onBoth(t, lockedBranches(20, before, change), func(t *testing.T, b *bench) {
					if err := b.goOn(t.Context(), order.Request{Chain: "/c", ID: "1"}); err != nil {
						t.Fatal(err)
					}
					b.now = b.now.Add(time.Minute)
					b.sweep()
					b.absent("1", "1!1", "1!2", "1!20")
					b.nothingLeft()
					b.free("a", "db")
				})
			})
		}
	}
}

// The children that are ended in one write may hold the lock, wait for it, and get it from each other.
func TestEndingChildrenWithTheSameLock(t *testing.T) {
	for name, change := range lockedForks {
		for _, before := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " ", before), func(t *testing.T) {
				onBoth(t, lockedBranches(20, before, change), func(t *testing.T, b *bench) {
					b.add(nil)
					b.sweep()
					if before {
						for _, l := range b.running() {
							b.complete(l, ok)
						}
					}
					b.do(order.Act{Kind: order.Remove}, nil)
					b.sweep()
					for i := range 20 {
						b.absent(fmt.Sprint("1!", i+1))
					}
					b.now = b.now.Add(time.Minute)
					b.sweep()
					b.nothingLeft()
					b.free("a", "db")
				})
			})
		}
	}
}

// TestChildrenWithTheSameLockSurviveAKillAtAnyWrite: whoever comes after the process goes on where it was.
func TestChildrenWithTheSameLockSurviveAKillAtAnyWrite(t *testing.T) {
	for name, change := range lockedForks {
		for _, applies := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/applies=%v", name, applies), func(t *testing.T) {
				t.Parallel()
				set, r := lockedBranches(5, true, change), order.Request{Chain: "/c", ID: "1"}
				for n, killed := 1, true; killed && !t.Failed(); n++ {
					base := shared{memory.New(memory.Options{})}
					m := &mortal{Store: base, writes: n, applies: applies}
					err := open(t, m, set).goOn(t.Context(), r)
					if killed = m.alive() != nil; !killed && err != nil {
						t.Fatal(err)
					}
					next := open(t, base, set)
					for range 3 {
						next.now = next.now.Add(time.Hour) // leases are over
						if _, err := next.queue.Sweep(t.Context()); err != nil {
							t.Fatal(err)
						}
						if err := next.goOn(t.Context(), r); err != nil {
							t.Fatal(err)
						}
					}
					next.absent("1", "1!1", "1!5")
					next.nothingLeft()
					next.free("a", "db")
					if t.Failed() {
						t.Errorf("killed at the write %d", n)
					}
				}
			})
		}
	}
}
