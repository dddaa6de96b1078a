package order_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
)

func (b *bench) sweep() {
	b.t.Helper()
	if err := b.Sweep(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

// A step has its node's timeout from the start of its first attempt: no further attempt begins after it.
func TestAStepTakesTooLong(t *testing.T) {
	chain := definition.JobChain{Path: "/c", Nodes: []definition.Node{
		{ID: "A", Job: "/again", Timeout: time.Minute, Error: "bad"}, {ID: "good"}, {ID: "bad"},
	}}
	onBoth(t, chains(chain), func(t *testing.T, b *bench) {
		b.add(nil)
		l := b.claim()
		if got := l.Task.Allowed(time.Hour); got != time.Minute {
			t.Errorf("the attempt may take %v, want a minute", got)
		}
		b.now = b.now.Add(20 * time.Second)
		b.complete(l, failed)
		b.now = b.now.Add(20 * time.Second)
		l = b.claim()
		if got := l.Task.Allowed(time.Hour); got != 20*time.Second {
			t.Errorf("the second attempt may take %v, want 20 s", got)
		}
		b.add(func(r *order.Request) { r.ID = "2" })
		late := b.claim()
		b.now = b.now.Add(time.Minute)
		b.events()
		b.complete(late, queue.Result{Outcome: queue.Failed}) // its first attempt
		b.want("OrderStepEnded:Error OrderNodeChanged:bad OrderFinished:bad TaskEnded TaskClosed")
	})
}

func TestAnOrderTakesTooLong(t *testing.T) {
	chain := ab()
	chain.Timeout = time.Hour
	onBoth(t, chains(chain), func(t *testing.T, b *bench) {
		b.add(func(r *order.Request) { r.RunAt = b.now.Add(time.Hour) })
		b.now = b.now.Add(90 * time.Minute)
		b.sweep() // it might have begun an hour ago, and has not
		b.step("A", ok)
		b.now = b.now.Add(59 * time.Minute)
		b.sweep()
		b.is(projection.Due, "B")
		b.events()
		b.now = b.now.Add(2 * time.Minute)
		b.sweep()
		b.sweep() // the first may only have found when the order began
		b.want("OrderNodeChanged:bad OrderFinished:bad TaskClosed TaskRemoved")

		b.add(nil)
		l := b.claim()
		b.now = b.now.Add(61 * time.Minute)
		b.events()
		b.sweep()
		if alive, err := b.queue.Heartbeat(t.Context(), l.Token, queue.Beat{}); err != nil || !alive.Stop {
			t.Errorf("Heartbeat = %+v, %v, want a stop", alive, err)
		}
		b.want()
		b.complete(l, ok)
		b.want("OrderStepEnded:Success OrderNodeChanged:bad OrderFinished:bad TaskEnded TaskClosed")

		b.add(nil)
		b.step("A", ok)
		b.do(order.Act{Kind: order.Suspend}, nil)
		b.now = b.now.Add(61 * time.Minute)
		b.sweep()
		b.is(projection.Due, "B")
		b.do(order.Act{Kind: order.Resume}, nil)
		b.events()
		b.sweep()
		b.want("OrderNodeChanged:bad OrderFinished:bad TaskClosed TaskRemoved")
	})
}

// An order that goes round in a circle is suspended.
func TestMaxVisits(t *testing.T) {
	chain := definition.JobChain{Path: "/c", MaxVisits: 3, Nodes: []definition.Node{
		{ID: "A", Job: "/j", Next: "B"}, {ID: "B", Job: "/j", Next: "A"}, {ID: "end"},
	}}
	onBoth(t, chains(chain), func(t *testing.T, b *bench) {
		b.add(nil)
		for i := range 6 {
			b.step([]string{"A", "B"}[i%2], ok)
		}
		b.events()
		if o := b.is(projection.Due, "A"); len(o.Obstacles) != 1 || o.Obstacles[0].Type != "Suspended" {
			t.Errorf("%+v, want it suspended", o)
		}
		b.do(order.Act{Kind: order.Reset}, nil)
		b.step("A", ok)
		for _, node := range []string{"A", "B"} {
			if err := b.SetAction(t.Context(), "/c", node, "next_state"); err != nil {
				t.Fatal(fmt.Errorf("%s: %w", node, err))
			}
		}
		if o := b.is(projection.Due, "A"); len(o.Obstacles) != 1 {
			t.Errorf("%+v, want it suspended", o)
		}
	})
}
