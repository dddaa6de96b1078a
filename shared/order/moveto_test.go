package order_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
)

// axb is the chain of [ab] with the node X behind A, and without bad.
func axb() definition.JobChain {
	return definition.JobChain{Path: "/c", Nodes: []definition.Node{
		{ID: "A", Job: "/j"}, {ID: "X", Job: "/j"}, {ID: "B", Job: "/again"}, {ID: "good"},
	}}
}

func TestAnOrderMovesToAnotherVersion(t *testing.T) {
	onBoth(t, chains(ab()), func(t *testing.T, b *bench) {
		b.add(nil)
		b.events()
		b.do(order.Act{Kind: order.Move}, order.ErrState) // it is on the newest
		b.do(order.Act{Kind: order.Move, Version: 2}, order.ErrNoVersion)
		b.declared.set = chains(axb())
		b.do(order.Act{Kind: order.Move}, nil) // its step waits
		b.want("OrderMoved:A TaskClosed TaskRemoved TaskAdded")
		if o := b.is(projection.Due, "A"); o.Version != 2 {
			t.Errorf("version %d, want 2", o.Version)
		}
		b.do(order.Act{Kind: order.Move, Version: 2}, order.ErrState)
		b.do(order.Act{Kind: order.Move, Version: 1}, nil)
		l := b.claim()
		b.events()
		b.do(order.Act{Kind: order.Move}, nil) // its step runs
		b.want("OrderMoved:A")
		b.complete(l, ok)
		b.is(projection.Due, "X")
		b.events()
		b.do(order.Act{Kind: order.Move, Version: 1}, order.ErrNodeGone)
		b.do(order.Act{Kind: order.Suspend}, nil)
		b.do(order.Act{Kind: order.SetNode, Node: "B"}, nil)
		b.events()
		b.do(order.Act{Kind: order.Move, Version: 1}, nil) // it is suspended
		b.want("OrderMoved:B")
		b.do(order.Act{Kind: order.Move}, nil)
		b.do(order.Act{Kind: order.Resume}, nil)
		b.complete(b.claim(), failed) // the first of two attempts: its step has begun
		b.events()
		b.do(order.Act{Kind: order.Move, Version: 1}, nil)
		b.want("OrderMoved:B")
		b.now = b.now.Add(time.Hour)
		b.complete(b.claim(), failed)
		b.want("TaskStarted OrderStepEnded:Error OrderNodeChanged:bad OrderFinished:bad TaskEnded TaskClosed")
	})
}

func TestAMoveNeedsTheNodesOfAnOrder(t *testing.T) {
	onBoth(t, chains(ab()), func(t *testing.T, b *bench) {
		b.add(func(r *order.Request) { r.EndNode = "B" })
		l := b.claim()
		b.do(order.Act{Kind: order.SetNode, Node: "bad"}, nil)
		b.events()
		b.declared.set = chains(axb())
		b.do(order.Act{Kind: order.Move}, order.ErrNodeGone) // it goes to bad when its step has ended
		b.declared.set = chains(definition.JobChain{Path: "/c", Nodes: []definition.Node{{ID: "A", Job: "/j"}, {ID: "bad"}}})
		b.do(order.Act{Kind: order.Move}, order.ErrNodeGone) // its end node
		b.declared.set = chains(definition.JobChain{Path: "/c", Nodes: []definition.Node{{ID: "B", Job: "/j"}, {ID: "A"}, {ID: "bad"}}})
		b.do(order.Act{Kind: order.Move}, order.ErrNodeGone) // A is an end there, and its step runs
		b.complete(l, ok)
		b.want("OrderStepEnded:Success OrderNodeChanged:bad OrderFinished:bad TaskEnded TaskClosed")
	})
}

func TestAMoveLetsGoWhatItsNodeHasHeld(t *testing.T) {
	chain := ab()
	chain.Nodes[0].Action = definition.ActionStop
	onBoth(t, chains(chain), func(t *testing.T, b *bench) {
		b.add(nil)
		b.want("OrderAdded:A OrderWaiting:A:node")
		b.declared.set = chains(ab())
		b.do(order.Act{Kind: order.Move}, nil)
		b.want("OrderMoved:A OrderNodeChanged:A TaskAdded")
	})
}

// numbers returns which versions of the chain /c are stored.
func (b *bench) numbers() string {
	b.t.Helper()
	page, err := b.store.Query(b.t.Context(), store.Range{Table: store.Work, Partition: "versions//c"})
	if err != nil {
		b.t.Fatal(err)
	}
	var all []string
	for _, item := range page.Items {
		all = append(all, item.Key.Sort[9:])
	}
	return fmt.Sprint(all)
}

// later sweeps after an hour, and wants these versions to be left.
func (b *bench) later(want string) {
	b.t.Helper()
	b.now = b.now.Add(time.Hour)
	if err := b.Sweep(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	if got := b.numbers(); got != want {
		b.t.Errorf("versions %s, want %s", got, want)
	}
}

func TestVersionsThatNobodyIsOnGo(t *testing.T) {
	onBoth(t, chains(ab()), func(t *testing.T, b *bench) {
		b.add(nil)
		b.declared.set = chains(axb())
		b.add(func(r *order.Request) { r.ID = "2" })
		b.declared.set = chains(ab())
		b.add(func(r *order.Request) { r.ID = "3" })
		b.later("[1 2 3]")
		if err := b.Act(t.Context(), "/c", "2", order.Act{Kind: order.Remove}); err != nil {
			t.Fatal(err)
		}
		b.later("[1 2 3]") // the first look that finds nobody on version 2 marks it
		b.events()
		b.do(order.Act{Kind: order.Move, Version: 2}, order.ErrNoVersion)
		b.later("[1 3]")
		b.do(order.Act{Kind: order.Move, Version: 2}, order.ErrNoVersion)
		b.do(order.Act{Kind: order.Move}, nil)
		b.later("[1 3]")
		b.later("[3]")
		b.later("[3]")
		b.step("A", ok)
	})
}

// addAs adds an order of the chain /c, and wants it to be on a version.
func (b *bench) addAs(id string, version int) {
	b.t.Helper()
	if o := b.add(func(r *order.Request) { r.ID = id }); o.Version != version {
		b.t.Errorf("the order %s is on version %d, want %d", id, o.Version, version)
	}
}

// What was declared before and is declared again is a version of its own, whatever this process remembers.
func TestAnOrderBeginsOnTheNewestVersion(t *testing.T) {
	onBoth(t, chains(ab()), func(t *testing.T, b *bench) {
		b.addAs("2", 1)
		b.addAs("3", 1)
		b.declared.set = chains(axb())
		b.addAs("4", 2)
		b.declared.set = chains(ab())
		b.addAs("1", 3)
		b.events()
		b.do(order.Act{Kind: order.Move}, order.ErrState)
	})
}

// A process that has heard of newer definitions later than others may bring about a version after this one's, which goes on: it does not
// use its own until that is gone.
func TestNoOrderBeginsOnAVersionThatIsGone(t *testing.T) {
	t.Parallel()
	s := shared{memory.New(memory.Options{})}
	b, late := open(t, s, chains(ab())), open(t, s, chains(axb()))
	b.addAs("2", 1)
	b.addAs("3", 1)
	late.addAs("4", 2)
	for _, id := range []string{"2", "3"} {
		if err := b.Act(t.Context(), "/c", id, order.Act{Kind: order.Remove}); err != nil {
			t.Fatal(err)
		}
	}
	b.later("[1 2]")
	b.later("[2]")
	b.addAs("1", 3)
	b.do(order.Act{Kind: order.Suspend}, nil)
}

// A replacement that waits for the running step of the order before it is on its version.
func TestAVersionThatAnOrderIsAboutToBeOnStays(t *testing.T) {
	onBoth(t, chains(ab()), func(t *testing.T, b *bench) {
		b.add(nil)
		l := b.claim()
		b.declared.set = chains(axb())
		b.add(func(r *order.Request) { r.Replace = true })
		b.declared.set = chains(ab())
		b.add(func(r *order.Request) { r.ID = "3" })
		for range 3 {
			b.later("[1 2 3]")
		}
		b.complete(l, ok)
	})
}

// New definitions disturb no order that is under way, and an act moves all whose nodes are there.
func TestNewDefinitionsDisturbNoOrder(t *testing.T) {
	onBoth(t, chains(ab()), func(t *testing.T, b *bench) {
		const n = 1000
		b.addMany(n)
		for range n / 2 { // half of them are at B
			b.complete(b.claim(), ok)
		}
		b.events()
		b.declared.set = chains(definition.JobChain{Path: "/c", Nodes: []definition.Node{{ID: "A", Job: "/j"}, {ID: "X", Job: "/j"}, {ID: "end"}}})
		b.add(func(r *order.Request) { r.ID = "new" })
		b.sweep()
		b.want("OrderAdded:A TaskAdded")
		at := map[string]int{}
		for _, node := range []string{"A", "B"} {
			var err error
			if at[node], err = b.Count(t.Context(), order.Filter{Paths: event.AllPaths(), Node: node}); err != nil {
				t.Fatal(err)
			}
		}
		began := b.all(order.Act{Kind: order.Move}, everything)
		b.sweep()
		b.told(began.ID, order.Bulk{Kind: "move", By: "ada", Count: n + 1, Done: at["A"] - 1, Failed: at["B"] + 1, State: order.BulkDone})
		b.events() // compares all orders with what their events say
	})
}

// An order that has forked may move; its children stay where they are, and join it there.
func TestAnOrderThatHasForkedMoves(t *testing.T) {
	onBoth(t, chains(branches(nil)), func(t *testing.T, b *bench) {
		b.add(nil)
		b.sweep()
		if o := b.is(projection.WaitingForResource, "F"); o.Version != 1 {
			t.Fatalf("%+v", o)
		}
		b.events()
		b.declared.set = chains(ab())
		b.do(order.Act{Kind: order.Move}, order.ErrNodeGone)
		b.declared.set = chains(branches(func(fork *definition.Node) { fork.Timeout = time.Hour }))
		b.do(order.Act{Kind: order.Move}, nil)
		b.later("[1 2]")
		b.work(succeed)
		b.sweep()
		if _, err := b.Get(t.Context(), "/c", "1"); !errors.Is(err, order.ErrNoOrder) {
			t.Errorf("Get = %v, want ErrNoOrder", err)
		}
	})
}

// What a node of an older version does with the orders that are still there can be changed, though the newest version has no such node
// or declares another action for it.
func TestTheActionOfANodeOfAnOlderVersion(t *testing.T) {
	stops := axb()
	stops.Nodes[0].Action = definition.ActionStop
	onBoth(t, chains(stops), func(t *testing.T, b *bench) {
		b.add(nil)
		b.on("/c", "2")
		if err := b.Act(t.Context(), "/c", "2", order.Act{Kind: order.SetNode, Node: "X"}); err != nil {
			t.Fatal(err)
		}
		action := func(node, action string, want error) {
			t.Helper()
			if err := b.SetAction(t.Context(), "/c", node, action); !errors.Is(err, want) {
				t.Errorf("SetAction(%s, %s) = %v, want %v", node, action, err, want)
			}
		}
		action("X", definition.ActionStop, nil)
		b.declared.set = chains(ab())
		b.on("/c", "3") // which makes the newer version
		b.events()
		action("X", definition.ActionProcess, nil)
		b.want("JobChainNodeActionChanged:X OrderNodeChanged:X TaskAdded")
		action("A", definition.ActionProcess, nil)
		b.want("JobChainNodeActionChanged:A OrderNodeChanged:A TaskAdded")
		action("A", definition.ActionProcess, order.ErrState)
		action("Y", definition.ActionStop, order.ErrNoNode)
	})
}
