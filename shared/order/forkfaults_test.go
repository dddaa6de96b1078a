package order_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/store"
)

// Three processes fork and join orders over a bad network, while somebody suspends, resumes and removes some of them and of their
// children. Each child is there once and ends once, and each fork is joined once at most.
func TestForksOverABadNetwork(t *testing.T) {
	overABadNetwork(t, 30*time.Millisecond, forksOverABadNetwork)
}

func forksOverABadNetwork(t *testing.T, n network) {
	const orders, children = 4, 30
	set := chains(each(func(node *definition.Node) {
		node.Fork.Job, node.Join = "/again", &definition.Join{AtLeast: children - 5}
		if n.seed%2 == 1 {
			node.Fork.OnFailed = definition.FailedCancels
		}
	}))
	ctx, end := context.WithCancel(t.Context())
	var group, adding sync.WaitGroup
	for i, p := range n.processes(t, set) {
		for range 3 {
			group.Go(func() { p.toil(ctx) })
		}
		group.Go(func() { p.tend(ctx) })
		for id := i; id < orders; id += 3 {
			adding.Go(func() { p.insistOn(t, id, children) })
		}
		group.Go(func() { p.meddleWithForks(ctx, orders, children) })
	}
	adding.Wait()
	b := open(t, n.base, set)
	b.untilNoneIsLeft()
	end()
	group.Wait()
	b.agree()
	b.forkedOnce(orders)
	b.nothingLeft()
}

// insistOn adds an order with a list, until that is certain.
func (p rival) insistOn(t *testing.T, n, children int) {
	r := some(children)
	r.ID = fmt.Sprint(n)
	for range 100 {
		if _, err := p.Add(context.Background(), &journal.Idempotency{Scope: "test", Key: r.ID}, r); err == nil {
			return
		}
		time.Sleep(time.Second)
	}
	t.Errorf("the order %s cannot be added", r.ID)
}

// meddleWithForks acts on some orders and children, and then resumes all until ctx ends.
func (p rival) meddleWithForks(ctx context.Context, orders, children int) {
	id := func() string {
		n := fmt.Sprint(rand.N(orders))
		if rand.N(4) > 0 {
			n += fmt.Sprint("!", rand.N(children))
		}
		return n
	}
	for range 30 {
		_ = p.Act(ctx, "/c", id(), order.Act{Kind: []order.ActKind{order.Suspend, order.Suspend, order.Remove}[rand.N(3)]})
		time.Sleep(time.Second)
	}
	for ctx.Err() == nil {
		for n := range orders {
			_ = p.Act(ctx, "/c", fmt.Sprint(n), order.Act{Kind: order.Resume})
			for i := range children {
				_ = p.Act(ctx, "/c", fmt.Sprintf("%d!%d", n, i), order.Act{Kind: order.Resume})
			}
		}
		time.Sleep(10 * time.Second)
	}
}

// untilNoneIsLeft waits until there is no order, and nothing that is to be done.
func (b *bench) untilNoneIsLeft() {
	for range 1000 {
		left := 0
		for _, partition := range []string{"orders-of//c", "orders-due"} {
			page, err := b.store.Query(b.t.Context(), store.Range{Table: store.Work, Partition: partition})
			if err != nil {
				b.t.Fatal(err)
			}
			left += len(page.Items)
		}
		if left == 0 {
			return
		}
		time.Sleep(10 * time.Second)
	}
	b.t.Error("there are still orders")
}

// forkedOnce demands that all orders and their children were there once, and were joined once if they were not removed before.
func (b *bench) forkedOnce(orders int) {
	b.t.Helper()
	l := b.lived()
	for id, n := range l.added {
		if n != 1 || l.ended[id] != 1 {
			b.t.Errorf("%s: added %d times, ended %d times", id, n, l.ended[id])
		}
	}
	read, err := b.journal.ReadAfter(b.t.Context(), journal.Request{Limit: 100_000})
	if err != nil {
		b.t.Fatal(err)
	}
	joined, ended := map[string]int{}, map[string]map[string]bool{}
	for i := range read.Events {
		e := &read.Events[i]
		_, id := order.Split(e.Key.Path)
		parent, _, child := strings.Cut(id, "!")
		switch {
		case e.Type == event.OrderJoined:
			joined[id]++
			is := typed.ReadOrder[typed.OrderJoined](e)
			if is.Succeeded+is.Failed > len(ended[id]) {
				b.t.Errorf("%s is joined with %+v, but %d children have ended", id, is, len(ended[id]))
			}
		case child && (e.Type == event.OrderFinished || e.Type == event.OrderRemoved):
			if ended[parent] == nil {
				ended[parent] = map[string]bool{}
			}
			ended[parent][id] = true
		case e.Type == event.OrderFinished && joined[id] != 1:
			b.t.Errorf("%s has finished, and was joined %d times", id, joined[id])
		}
	}
	if n := len(l.added); n < orders {
		b.t.Errorf("%d orders were added, want at least %d", n, orders)
	}
}
