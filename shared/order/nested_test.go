package order_test

import (
	"errors"
	"testing"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/projection"
)

// nested is the chain /c, which goes through the chain /inner at its node O.
func nested() *definition.Set {
	return chains(
		definition.JobChain{Path: "/c", Nodes: []definition.Node{
			{ID: "A", Job: "/j"}, {ID: "O", Chain: "/inner", Next: "Z", Error: "bad"}, {ID: "Z", Job: "/j", Next: "good", Error: "bad"}, {ID: "good"}, {ID: "bad"},
		}},
		definition.JobChain{Path: "/inner", MaxOrders: 1, Nodes: []definition.Node{
			{ID: "X", Job: "/j", Error: "wrong"}, {ID: "Y", Job: "/j", Next: "right", Error: "wrong"}, {ID: "right"}, {ID: "wrong"},
		}},
	)
}

func TestAnOrderGoesThroughANestedChain(t *testing.T) {
	onBoth(t, nested(), func(t *testing.T, b *bench) {
		b.add(nil)
		b.step("A", ok)
		b.is(projection.Due, "O/X")
		b.step("O/X", ok)
		b.events()
		b.step("O/Y", ok)
		b.want("TaskStarted OrderStepStarted:O/Y OrderStepEnded:Success OrderNodeChanged:Z TaskEnded TaskClosed TaskAdded")
		b.step("Z", ok)
		b.want("TaskStarted OrderStepStarted:Z OrderStepEnded:Success OrderNodeChanged:good OrderFinished:good TaskEnded TaskClosed")
		b.add(nil)
		b.step("A", ok)
		b.events()
		b.step("O/X", failed)
		b.want("TaskStarted OrderStepStarted:O/X OrderStepEnded:Error OrderNodeChanged:bad OrderFinished:bad TaskEnded TaskClosed")
	})
}

func TestActsWithNodesOfNestedChains(t *testing.T) {
	onBoth(t, nested(), func(t *testing.T, b *bench) {
		b.add(func(r *order.Request) { r.Node, r.EndNode = "O", "O/Y" })
		b.events()
		b.is(projection.Due, "O/X")
		b.do(order.Act{Kind: order.SetNode, Node: "O"}, order.ErrState)
		b.do(order.Act{Kind: order.SetNode, Node: "X"}, order.ErrNoNode)
		b.do(order.Act{Kind: order.SetNode, Node: "O/Y"}, nil)
		b.is(projection.Due, "O/Y")
		b.do(order.Act{Kind: order.SetNode, Node: "O"}, nil)
		b.is(projection.Due, "O/X")
		b.do(order.Act{Kind: order.Skip}, nil)
		b.events()
		if err := b.SetAction(t.Context(), "/c", "O/X", definition.ActionStop); err != nil {
			t.Fatal(err)
		}
		b.want("JobChainNodeActionChanged:O/X")
		b.step("O/Y", ok)
		b.want("TaskStarted OrderStarted OrderStepStarted:O/Y OrderStepEnded:Success OrderFinished:O/Y TaskEnded TaskClosed")
		if _, err := b.Add(t.Context(), nil, order.Request{Chain: "/inner", ID: "1"}); err != nil {
			t.Error(err)
		}
		if _, err := b.Get(t.Context(), "/c", "1"); !errors.Is(err, order.ErrNoOrder) {
			t.Error(err)
		}
	})
}

func TestAForkInANestedChain(t *testing.T) {
	set := nested()
	set.JobChains[1].Nodes[1] = definition.Node{ID: "Y", Fork: &definition.Fork{Branches: map[string][]definition.Node{
		"a": {{Job: "/j"}}, "b": {{Chain: "/leaf", ID: "L"}},
	}}, Next: "right", Error: "wrong"}
	set.JobChains = append(set.JobChains, definition.JobChain{Path: "/leaf", Nodes: []definition.Node{{ID: "W", Job: "/j", Error: "no"}, {ID: "yes"}, {ID: "no"}}})
	onBoth(t, set, func(t *testing.T, b *bench) {
		b.add(nil)
		if got := b.work(succeed); len(got) != 5 || got[2] != "1!a:O/Y/a/1" || got[3] != "1!b:O/L/W" || got[4] != "1:Z" {
			t.Error(got)
		}
		b.absent("1")
		b.add(nil)
		if got := b.work(failing("1!b")); len(got) != 4 {
			t.Error(got)
		}
		b.wantCounts(map[string]int{"OrderFinished:good": 1, "OrderFinished:bad": 1})
	})
}

// An order whose end is a nested chain finishes when it would go on to the node after that, however it gets there.
func TestAnOrderThatEndsWithANestedChain(t *testing.T) {
	set := nested()
	set.JobChains = append(set.JobChains,
		definition.JobChain{Path: "/asks", Nodes: []definition.Node{
			{ID: "O", Chain: "/question", Next: "Z"}, {ID: "Z", Job: "/j"}, {ID: "good"},
		}},
		definition.JobChain{Path: "/question", Nodes: []definition.Node{
			{ID: "P", Prompt: &definition.Prompt{Role: "operator", Answers: map[string]string{"again": "J", "yes": "right"}}},
			{ID: "J", Job: "/j", Next: "P"}, {ID: "right"},
		}},
		definition.JobChain{Path: "/last", Nodes: []definition.Node{{ID: "A", Job: "/j"}, {ID: "O", Chain: "/inner"}}},
	)
	onBoth(t, set, func(t *testing.T, b *bench) {
		ends := func(r *order.Request) { r.EndNode = "O" }
		b.add(ends)
		b.step("A", ok)
		b.step("O/X", ok)
		b.is(projection.Due, "O/Y")
		b.events()
		b.step("O/Y", ok)
		b.want("TaskStarted OrderStepStarted:O/Y OrderStepEnded:Success OrderFinished:O/Y TaskEnded TaskClosed")

		b.add(ends)
		b.step("A", ok)
		b.step("O/X", failed) // goes on as it would otherwise
		b.events()
		b.add(func(r *order.Request) { r.Chain, r.EndNode = "/last", "O" })
		b.step("A", ok)
		b.step("O/X", ok)
		b.events()
		b.step("O/Y", ok)
		b.want("TaskStarted OrderStepStarted:O/Y OrderStepEnded:Success OrderNodeChanged:O/right OrderFinished:O/right TaskEnded TaskClosed")

		b.add(func(r *order.Request) { r.Chain, r.EndNode = "/asks", "O" })
		answer := func(text string) {
			t.Helper()
			if err := b.Answer(t.Context(), "/asks", "1", order.Answer{Answer: text, May: func(string) bool { return true }}); err != nil {
				t.Fatal(err)
			}
		}
		answer("again")
		b.step("O/J", ok)
		b.events()
		answer("yes")
		b.want("OrderAnswered OrderFinished:O/P")
	})
}
