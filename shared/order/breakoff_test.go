package order_test

import (
	"testing"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/order"
)

// again is the chain /c of A, whose step has two attempts, and an end.
func again() *definition.Set {
	return chains(definition.JobChain{Path: "/c", Nodes: []definition.Node{{ID: "A", Job: "/again", Next: "end"}, {ID: "end"}}})
}

// A step that waits for another attempt has begun: who takes it back ends it, for the order and for its events.
func TestAStepThatWaitsForAnotherAttemptIsBrokenOff(t *testing.T) {
	onBoth(t, again(), func(t *testing.T, b *bench) {
		b.add(nil)
		b.step("A", failed)
		b.is("WaitingInTask", "A")
		b.events()
		if err := b.Act(t.Context(), "/c", "1", order.Act{Kind: order.Suspend}); err != nil {
			t.Fatal(err)
		}
		b.want("OrderStepEnded:Keep", "OrderSuspended", "TaskClosed", "TaskRemoved")
		b.is("Due", "A")
	})
}

// What is to happen at the end of a step is not forgotten when its first attempt fails.
func TestWhatIsAskedOfARunningStepOutlivesItsAttempt(t *testing.T) {
	onBoth(t, again(), func(t *testing.T, b *bench) {
		b.add(nil)
		l := b.claim()
		if err := b.Act(t.Context(), "/c", "1", order.Act{Kind: order.Remove}); err != nil {
			t.Fatal(err)
		}
		b.complete(l, failed)
		if err := b.StopChain(t.Context(), "/c", true); err != nil {
			t.Fatal(err)
		}
		b.is("WaitingInTask", "A")
		b.now = b.now.Add(1 << 40)
		b.step("A", failed)
		if _, err := b.Get(t.Context(), "/c", "1"); err == nil {
			t.Error("the order is there after the end of its step, and was to be removed")
		}
	})
}
