package order_test

import (
	"errors"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/projection"
)

// asking is the chain /c of a step, a prompt P with a deadline, and a step for each of its answers.
func asking(change func(p *definition.Node)) *definition.Set {
	p := definition.Node{ID: "P", Next: "B", Prompt: &definition.Prompt{
		Role: "operator", Deadline: time.Hour, Default: "late", Answers: map[string]string{"yes": "B", "no": "bad"},
	}}
	if change != nil {
		change(&p)
	}
	return chains(definition.JobChain{Path: "/c", Nodes: []definition.Node{
		{ID: "A", Job: "/j"}, p, {ID: "B", Job: "/j"}, {ID: "good"}, {ID: "bad"}, {ID: "late", Job: "/j", Next: "good"},
	}})
}

// answer answers as somebody who has only that role.
func (b *bench) answer(role, text string, want error) {
	b.t.Helper()
	a := order.Answer{Answer: text, Comment: "so", May: func(asked string) bool { return asked == role }}
	if err := b.Answer(b.t.Context(), "/c", "1", a); !errors.Is(err, want) {
		b.t.Errorf("Answer(%s) by a %s = %v, want %v", text, role, err, want)
	}
}

// obstacle compares the order's only obstacle, and returns when it ends.
func obstacle(t *testing.T, o projection.OrderOverview, name string) time.Time {
	t.Helper()
	if len(o.Obstacles) != 1 || o.Obstacles[0].Type != name {
		t.Errorf("obstacles %+v, want %s", o.Obstacles, name)
		return time.Time{}
	}
	return o.Obstacles[0].Until.Time
}

func TestAPromptWaitsForAnAnswer(t *testing.T) {
	onBoth(t, asking(nil), func(t *testing.T, b *bench) {
		b.add(nil)
		b.answer("operator", "yes", order.ErrState)
		b.step("A", ok)
		b.want("OrderAdded:A TaskAdded TaskStarted OrderStarted OrderStepStarted:A",
			"OrderStepEnded:Success OrderNodeChanged:P OrderPrompted:P TaskEnded TaskClosed")
		deadline := b.now.Add(time.Hour)
		if until := obstacle(t, b.is(projection.WaitingForResource, "P"), "Prompt"); !until.Equal(deadline) {
			t.Errorf("the prompt ends at %v, want %v", until, deadline)
		}
		if r, err := b.Why(t.Context(), "/c", "1"); err != nil || r.Code != order.ReasonPrompt || r.Details["role"] != "operator" {
			t.Errorf("Why = %+v, %v", r, err)
		}
		b.now = b.now.Add(time.Hour - 1)
		b.sweep()
		if b.claim() != nil {
			t.Error("something runs at a prompt")
		}
		b.answer("viewer", "yes", order.ErrRole)
		b.answer("operator", "perhaps", order.ErrNoAnswer)
		b.want()
		b.answer("operator", "yes", nil)
		b.want("OrderAnswered OrderNodeChanged:B TaskAdded")
		b.answer("operator", "yes", order.ErrState)
		b.now = deadline
		b.sweep()
		b.step("B", ok)
		b.want("TaskStarted OrderStepStarted:B OrderStepEnded:Success OrderNodeChanged:good OrderFinished:good TaskEnded TaskClosed")
		b.answer("operator", "yes", order.ErrNoOrder)
	})
}

func TestAPromptGoesToItsDefaultAtItsDeadline(t *testing.T) {
	onBoth(t, asking(nil), func(t *testing.T, b *bench) {
		b.add(nil)
		b.step("A", ok)
		b.events()
		b.now = b.now.Add(time.Hour)
		b.sweep()
		b.want("OrderNodeChanged:late TaskAdded")
		b.answer("operator", "yes", order.ErrState)
		b.step("late", ok)
	})
}

func TestAPromptWithoutADeadlineWaitsForEver(t *testing.T) {
	onBoth(t, asking(func(n *definition.Node) { n.Prompt.Deadline = 0 }), func(t *testing.T, b *bench) {
		b.add(nil)
		b.step("A", ok)
		b.events()
		b.now = b.now.Add(1000 * time.Hour)
		b.sweep()
		if until := obstacle(t, b.is(projection.WaitingForResource, "P"), "Prompt"); !until.IsZero() {
			t.Errorf("the prompt ends at %v, want never", until)
		}
		b.answer("operator", "no", nil)
		b.want("OrderAnswered OrderNodeChanged:bad OrderFinished:bad")
	})
}

// A suspended order is asked all the same, but nobody can answer; its deadline does not wait.
func TestAPromptOfASuspendedOrder(t *testing.T) {
	onBoth(t, asking(nil), func(t *testing.T, b *bench) {
		b.add(nil)
		b.step("A", ok)
		b.do(order.Act{Kind: order.Suspend}, nil)
		b.answer("operator", "yes", order.ErrState)
		b.events()
		b.do(order.Act{Kind: order.Resume}, nil)
		b.want("OrderResumed")
		obstacle(t, b.is(projection.WaitingForResource, "P"), "Prompt")
		b.do(order.Act{Kind: order.Suspend}, nil)
		b.events()
		b.now = b.now.Add(time.Hour)
		b.sweep()
		b.want("OrderNodeChanged:late")
		obstacle(t, b.is(projection.Due, "late"), "Suspended")
		b.do(order.Act{Kind: order.Resume}, nil)
		b.step("late", ok)
	})
}

func TestActsOnAnOrderAtAPrompt(t *testing.T) {
	onBoth(t, asking(nil), func(t *testing.T, b *bench) {
		b.add(nil)
		b.step("A", ok)
		b.events()
		b.do(order.Act{Kind: order.SetNode, Node: "A"}, nil)
		b.want("OrderNodeChanged:A TaskAdded")
		b.answer("operator", "yes", order.ErrState)
		b.do(order.Act{Kind: order.Skip}, nil)
		b.do(order.Act{Kind: order.Skip}, nil)
		b.want("OrderNodeChanged:P OrderPrompted:P TaskClosed TaskRemoved OrderNodeChanged:B TaskAdded")
		b.do(order.Act{Kind: order.SetNode, Node: "P"}, nil)
		b.now = b.now.Add(time.Hour)
		b.do(order.Act{Kind: order.SetNode, Node: "B"}, nil)
		b.sweep() // the deadline of a prompt that is over
		b.is(projection.Due, "B")
		b.do(order.Act{Kind: order.SetNode, Node: "P"}, nil)
		b.events()
		b.do(order.Act{Kind: order.Suspend}, nil)
		b.do(order.Act{Kind: order.Reset}, nil)
		b.want("OrderSuspended OrderResumed OrderNodeChanged:A TaskAdded")
		b.do(order.Act{Kind: order.SetNode, Node: "P"}, nil)
		b.do(order.Act{Kind: order.Remove}, nil)
		b.sweep()
	})
}

func TestAPromptBeginsAfterItsDelay(t *testing.T) {
	onBoth(t, asking(func(n *definition.Node) { n.Delay = time.Minute }), func(t *testing.T, b *bench) {
		b.add(nil)
		b.step("A", ok)
		b.want("OrderAdded:A TaskAdded TaskStarted OrderStarted OrderStepStarted:A OrderStepEnded:Success OrderNodeChanged:P TaskEnded TaskClosed")
		b.is(projection.Due, "P")
		b.answer("operator", "yes", order.ErrState)
		b.now = b.now.Add(time.Minute)
		b.sweep()
		b.want("OrderPrompted:P")
		if until := obstacle(t, b.is(projection.WaitingForResource, "P"), "Prompt"); !until.Equal(b.now.Add(time.Hour)) {
			t.Errorf("the prompt ends at %v", until)
		}
	})
}

func TestAPromptAtTheOrdersOwnEnd(t *testing.T) {
	onBoth(t, asking(nil), func(t *testing.T, b *bench) {
		b.add(func(r *order.Request) { r.Node, r.EndNode, r.RunAt = "P", "P", b.now.Add(time.Minute) })
		b.is(projection.Planned, "P")
		b.now = b.now.Add(time.Minute)
		b.sweep()
		b.want("OrderAdded:P OrderPrompted:P")
		b.is(projection.WaitingForResource, "P")
		b.answer("operator", "no", nil)
		b.want("OrderAnswered OrderFinished:P")
	})
}
