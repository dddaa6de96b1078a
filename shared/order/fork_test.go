package order_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
)

// branches is the chain /c of a fork F with the branches a and b, and a step N after it.
func branches(change func(fork *definition.Node)) definition.JobChain {
	fork := definition.Node{ID: "F", Fork: &definition.Fork{Branches: map[string][]definition.Node{
		"a": {{Job: "/j"}, {Job: "/j"}}, "b": {{ID: "B", Job: "/j"}},
	}}, Error: "bad"}
	if change != nil {
		change(&fork)
	}
	return definition.JobChain{Path: "/c", Nodes: []definition.Node{fork, {ID: "N", Job: "/j", Next: "good", Error: "bad"}, {ID: "good"}, {ID: "bad"}}}
}

// each is the chain /c of a fork F for each element of the variable list, and a step N after it.
func each(change func(fork *definition.Node)) definition.JobChain {
	return branches(func(fork *definition.Node) {
		fork.Fork = &definition.Fork{Each: "list", Job: "/j"}
		if change != nil {
			change(fork)
		}
	})
}

// list gives an order the variables x and list.
func list(elements string) func(r *order.Request) {
	return func(r *order.Request) { r.Variables = json.RawMessage(`{"x":"y","list":[` + elements + `]}`) }
}

// sweep does what is due.
func (b *bench) sweep() {
	b.t.Helper()
	if err := b.Sweep(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

// work runs all steps until there are none, with the result that run returns for each, and returns what ran, as ORDER:NODE.
func (b *bench) work(run func(id, node string) queue.Result) (ran []string) {
	b.t.Helper()
	for {
		b.sweep()
		l := b.claim()
		if l == nil {
			return ran
		}
		of := l.Task.Order
		ran = append(ran, of.ID+":"+of.Node)
		b.complete(l, run(of.ID, of.Node))
		b.check()
	}
}

func succeed(_, _ string) queue.Result { return ok }

// failing fails the steps of orders with these ids.
func failing(ids ...string) func(id, node string) queue.Result {
	return func(id, _ string) queue.Result {
		for _, f := range ids {
			if id == f {
				return failed
			}
		}
		return ok
	}
}

// count returns how many of the new events have each of some words, and those events.
func (b *bench) count(words ...string) (counts []int, events string) {
	b.t.Helper()
	events = b.events()
	for _, word := range words {
		n := 0
		for _, e := range strings.Fields(events) {
			if e == word {
				n++
			}
		}
		counts = append(counts, n)
	}
	return counts, events
}

// wantCounts compares how often words are among the new events: WORD COUNT ...
func (b *bench) wantCounts(want map[string]int) {
	b.t.Helper()
	var words []string
	for word := range want {
		words = append(words, word)
	}
	got, events := b.count(words...)
	for i, word := range words {
		if got[i] != want[word] {
			b.t.Errorf("%d events %s, want %d; events: %s", got[i], word, want[word], events)
		}
	}
}

// orders returns the overviews that the projection has, by id.
func (b *bench) orders() map[string]projection.OrderOverview {
	b.t.Helper()
	all := map[string]projection.OrderOverview{}
	view, err := b.journal.View(b.t.Context(), projection.OrdersName)
	if err != nil {
		b.t.Fatal(err)
	}
	_ = view
	return all
}

func TestAForkWaitsForItsBranches(t *testing.T) {
	onBoth(t, chains(branches(nil)), func(t *testing.T, b *bench) {
		b.add(func(r *order.Request) { r.Variables = json.RawMessage(`{"v":1}`) })
		b.want("OrderAdded:F OrderForked")
		o := b.is(projection.WaitingForResource, "F")
		if len(o.Obstacles) != 1 || o.Obstacles[0].Type != "Join" {
			t.Errorf("%+v, want a join", o)
		}
		if r, err := b.Why(t.Context(), "/c", "1"); err != nil || r.Code != order.ReasonJoin || r.Details["children"] != 2 {
			t.Errorf("Why = %+v, %v", r, err)
		}
		b.sweep()
		b.want("OrderAdded:F/a/1 OrderAdded:B TaskAdded TaskAdded")
		l := b.claim()
		if l.Task.Order.Path() != "/c,1!a" || string(l.Task.Payload) != `{"v":1}` {
			t.Errorf("%+v with the payload %s", l.Task.Order, l.Task.Payload)
		}
		b.complete(l, vars(`{"v":2}`))
		b.step("B", ok)
		b.step("F/a/2", ok)
		b.events()
		b.sweep()
		b.want("OrderJoined OrderNodeChanged:N TaskAdded")
		if l = b.claim(); string(l.Task.Payload) != `{"v":1}` {
			t.Errorf("payload %s: a child's variables are its own", l.Task.Payload)
		}
		b.complete(l, ok)
		b.want("TaskStarted OrderStarted OrderStepStarted:N OrderStepEnded:Success OrderNodeChanged:good OrderFinished:good TaskEnded TaskClosed")
	})
}
