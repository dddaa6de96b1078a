package order_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/projection"
)

func TestAPermanentOrderGoesBackToItsFirstNode(t *testing.T) {
	onBoth(t, chains(ab()), func(t *testing.T, b *bench) {
		start := func(in time.Duration) {
			t.Helper()
			if _, err := b.Start(t.Context(), nil, "/c", "1", b.now.Add(in)); err != nil {
				t.Fatal(err)
			}
		}
		leftOut := func(in time.Duration) {
			t.Helper()
			if _, err := b.Start(t.Context(), nil, "/c", "1", b.now.Add(in)); !errors.Is(err, order.ErrState) {
				t.Errorf("Start = %v, want it left out", err)
			}
		}
		start(time.Minute)
		leftOut(time.Minute) // once
		leftOut(0)           // the later one is planned
		b.want("OrderAdded:A OrderResumed TaskAdded")
		b.is(projection.Planned, "A")
		start(2 * time.Minute)
		start(10 * time.Minute)
		leftOut(10 * time.Minute)
		b.want()
		b.now = b.now.Add(time.Minute)
		b.step("A", ok)
		b.now = b.now.Add(time.Second)
		leftOut(0)                         // it is under way
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
		if _, err := b.Start(t.Context(), nil, "/c", "1", b.now); !errors.Is(err, order.ErrState) {
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
		if _, err := b.Start(t.Context(), nil, "/c", "1", at); err != nil {
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
		if _, err := b.Start(t.Context(), nil, "/c", "1", b.now.Add(time.Hour)); err != nil {
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

// An order of a schedule may end as soon as it starts, with the first version of its chain, and also in line for a place.
func TestPermanentOrdersThatEndAtOnce(t *testing.T) {
	chain := definition.JobChain{Path: "/c", MaxOrders: 1, Nodes: []definition.Node{
		{ID: "W", Wait: &definition.Wait{Until: "2026-01-01T00:30:00Z"}}, {ID: "end"},
	}}
	onBoth(t, chains(chain), func(t *testing.T, b *bench) {
		start := func(id string, in time.Duration) {
			t.Helper()
			if _, err := b.Start(t.Context(), nil, "/c", id, b.now.Add(in)); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 5 { // the first one waits, the others are in line
			start(fmt.Sprint(i), 0)
		}
		b.now = b.now.Add(time.Hour)
		b.sweep()
		b.events()
		start("1", 0)
		b.want("OrderResumed OrderNodeChanged:end OrderFinished:end OrderAdded:W")
		start("new", 0)
		b.sweep()
		for i := range 5 {
			if o, err := b.Get(t.Context(), "/c", fmt.Sprint(i)); err != nil || o.State.Type != projection.NotPlanned {
				t.Errorf("%+v, %v", o, err)
			}
		}
		b.events()
	})
}

func TestAPermanentOrderThatEndsAtOnceInANewVersion(t *testing.T) {
	chain := definition.JobChain{Path: "/c", Nodes: []definition.Node{{ID: "W", Wait: &definition.Wait{Until: "2025-01-01T00:00:00Z"}}, {ID: "end"}}}
	onBoth(t, chains(chain), func(t *testing.T, b *bench) {
		if _, err := b.Start(t.Context(), nil, "/c", "1", b.now); err != nil {
			t.Fatal(err)
		}
		b.is(projection.NotPlanned, "W")
		b.events()
	})
}
