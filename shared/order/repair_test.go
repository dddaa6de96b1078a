package order_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/projection"
)

// An order can be sent to any node whatever keeps it, and goes on there when it is resumed; the journal says what was changed, and by
// whom.
func TestAnOrderIsRepaired(t *testing.T) {
	onBoth(t, chains(ab()), func(t *testing.T, b *bench) {
		as := func(who string, a order.Act) {
			t.Helper()
			if err := b.Act(journal.WithActor(t.Context(), who), "/c", "1", a); err != nil {
				t.Fatal(a.Kind, err)
			}
		}
		b.add(nil)
		l := b.claim()
		as("ada", order.Act{Kind: order.Suspend})
		b.complete(l, failed)
		b.is(projection.Blacklisted, "bad")
		b.events()
		from := b.seen
		as("ada", order.Act{Kind: order.SetNode, Node: "B"}) // of a blacklisted one
		as("bob", order.Act{Kind: order.SetNode, Node: "A"}) // of a suspended one
		as("bob", order.Act{Kind: order.Skip})
		as("eve", order.Act{Kind: order.Resume, Variables: json.RawMessage(`{"v":2}`)})
		b.want("OrderSuspended OrderNodeChanged:B OrderNodeChanged:A OrderNodeChanged:B OrderResumed TaskAdded")
		page, err := b.journal.ReadAfter(t.Context(), journal.Request{After: from, Limit: 100, Causes: true})
		if err != nil {
			t.Fatal(err)
		}
		for i, who := range []string{"ada", "ada", "bob", "bob", "eve", "eve"} {
			if e := page.Events[i]; e.By != who {
				t.Errorf("%s is by %q, want %q", e.Type, e.By, who)
			}
		}
		if got := string(page.Events[4].Fields); got != `"variables":{"v":2}` {
			t.Errorf("OrderResumed has %s", got)
		}
		b.step("B", ok)
	})
}

// What was noted for the end of a running step has no event of its own: what happens then names the event before that.
func TestTheCauseOfWhatWasNotedWhileAStepRan(t *testing.T) {
	chain := ab()
	chain.Nodes[0].Job = "/again"
	onBoth(t, chains(chain), func(t *testing.T, b *bench) {
		b.add(nil)
		b.complete(b.claim(), failed)
		l := b.claim()
		if l == nil {
			t.Fatal("there is no other attempt")
		}
		b.do(order.Act{Kind: order.SetNode, Node: "B"}, nil)
		b.do(order.Act{Kind: order.Remove}, nil)
		from := b.seen
		b.complete(l, ok)
		page, err := b.journal.ReadAfter(t.Context(), journal.Request{After: from, Limit: 100, Causes: true})
		if err != nil {
			t.Fatal(err)
		}
		ended := slices.IndexFunc(page.Events, func(e event.Event) bool { return e.Type == event.OrderStepEnded })
		begun := slices.IndexFunc(page.Events, func(e event.Event) bool { return e.Type == event.OrderAdded })
		if want := page.Events[begun].ID; page.Events[ended].Cause.ID() != want {
			t.Errorf("OrderStepEnded is caused by %d, want the OrderAdded %d", page.Events[ended].Cause.ID(), want)
		}
		b.events()
	})
}
