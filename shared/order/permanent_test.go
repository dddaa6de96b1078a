package order_test

import (
	"errors"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/projection"
)

func TestAPermanentOrderGoesBackToItsFirstNode(t *testing.T) {
	onBoth(t, chains(ab()), func(t *testing.T, b *bench) {
		start := func(in time.Duration) {
			t.Helper()
			if _, err := b.Start(t.Context(), "/c", "1", b.now.Add(in)); err != nil {
				t.Fatal(err)
			}
		}
		start(time.Minute)
		start(time.Minute) // once
		b.want("OrderAdded:A OrderResumed TaskAdded")
		b.is(projection.Planned, "A")
		start(2 * time.Minute)
		start(10 * time.Minute)
		b.want()
		b.now = b.now.Add(time.Minute)
		b.step("A", ok)
		b.now = b.now.Add(2 * time.Minute) // the second start passes meanwhile
		b.events()
		b.step("B", ok)
		b.want("TaskStarted OrderStepStarted:B OrderStepEnded:Success OrderNodeChanged:good OrderFinished:good OrderAdded:A OrderResumed TaskEnded TaskClosed TaskAdded")
		b.is(projection.Planned, "A")
		if err := b.Unstart(t.Context(), "/c", "1", b.now); err != nil {
			t.Fatal(err)
		}
		b.want("OrderAdded:A TaskClosed TaskRemoved")
		b.is(projection.NotPlanned, "A")
		b.do(order.Act{Kind: order.Skip}, order.ErrState)
		b.do(order.Act{Kind: order.Suspend}, nil)
		if _, err := b.Start(t.Context(), "/c", "1", b.now); !errors.Is(err, order.ErrState) {
			t.Errorf("Start of a suspended order = %v", err)
		}
		b.do(order.Act{Kind: order.Resume}, nil)
		b.is(projection.NotPlanned, "A")
		b.events()
		b.do(order.Act{Kind: order.RunNow}, nil)
		b.want("OrderResumed TaskAdded")
		b.step("A", failed)
		b.is(projection.NotPlanned, "A")
		b.do(order.Act{Kind: order.Remove}, nil)
	})
}

// Variables that an order got while it waits for its start are there whatever its events say of the wait.
func TestAnOrderThatWaitsForItsStartKeepsItsVariables(t *testing.T) {
	onBoth(t, chains(ab()), func(t *testing.T, b *bench) {
		at := b.now.Add(time.Hour)
		if _, err := b.Start(t.Context(), "/c", "1", at); err != nil {
			t.Fatal(err)
		}
		if err := b.Unstart(t.Context(), "/c", "1", b.now); err != nil {
			t.Fatal(err)
		}
		for _, act := range []order.Act{{Kind: order.Suspend}, {Kind: order.Resume, Variables: []byte(`{"v":1}`)}} {
			if err := b.Act(t.Context(), "/c", "1", act); err != nil {
				t.Fatal(err)
			}
		}
		if got := string(b.is("NotPlanned", "A").Variables); got != `{"v":1}` {
			t.Errorf("the variables are %s", got)
		}
	})
}

// A start that somebody has brought forward is not taken back once its step has begun.
func TestAStartIsNotTakenBackBetweenTwoAttempts(t *testing.T) {
	chain := ab()
	chain.Nodes[0].Job = "/again"
	onBoth(t, chains(chain), func(t *testing.T, b *bench) {
		if _, err := b.Start(t.Context(), "/c", "1", b.now.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		b.do(order.Act{Kind: order.RunNow}, nil)
		b.complete(b.claim(), failed)
		b.events()
		if err := b.Unstart(t.Context(), "/c", "1", b.now); err != nil {
			t.Fatal(err)
		}
		b.want()
		b.step("A", ok)
		b.is(projection.Due, "B")
	})
}
