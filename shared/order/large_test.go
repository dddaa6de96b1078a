package order_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
)

// filled returns variables of so many bytes that begin like that.
func filled(begin string, size int) json.RawMessage {
	begin += `,"x":"`
	return json.RawMessage(begin + strings.Repeat("y", size-len(begin)-2) + `"}`)
}

// A child has its parent's variables, without the list, with item and index: that may be more than variables may take.
func TestAForkWhoseChildrenWouldHaveTooLargeVariables(t *testing.T) {
	const begin = `{"list":[1]`
	more := len(`"item":1,"index":0`) - len(`"list":[1]`)
	onBoth(t, chains(each(nil)), func(t *testing.T, b *bench) {
		b.add(func(r *order.Request) { r.Variables = filled(begin, order.MaxVariables-more+1) })
		b.want("OrderAdded:F OrderNodeChanged:bad OrderFinished:bad")
		b.add(func(r *order.Request) { r.Variables = filled(begin, order.MaxVariables-more) })
		b.sweep()
		b.events()
		b.step("F/each", vars(`{"item":2}`))
		b.sweep()
		b.is("Due", "N")
	})
	suspends := definition.JobChain{Path: "/c", Nodes: []definition.Node{{ID: "F", Fork: &definition.Fork{Each: "list", Job: "/j"}}, {ID: "good"}}}
	t.Run("without an error node", func(t *testing.T) {
		onBoth(t, chains(suspends), func(t *testing.T, b *bench) {
			b.add(func(r *order.Request) { r.Variables = filled(begin, order.MaxVariables) })
			b.want("OrderAdded:F OrderSuspended")
			b.do(order.Act{Kind: order.Resume, Variables: json.RawMessage(`{"x":"small"}`)}, nil)
			b.sweep()
			b.step("F/each", ok)
		})
	})
}

// The limit is for what comes in: an order with more, whoever stored it, goes on.
func TestStoredVariablesMayBeTooLarge(t *testing.T) {
	t.Parallel()
	s := memory.New(memory.Options{})
	chain := each(nil)
	chain.Nodes = append([]definition.Node{{ID: "A", Job: "/j"}}, chain.Nodes...)
	b := open(t, s, chains(chain))
	b.add(nil)
	items, err := s.Get(t.Context(), store.Key{Table: store.Work, Partition: "order//c,1", Sort: "-"})
	if err != nil {
		t.Fatal(err)
	}
	var stored map[string]any
	if err := json.Unmarshal(items[0].Value, &stored); err != nil {
		t.Fatal(err)
	}
	stored["vs"] = filled(`{"list":[1,2]`, order.MaxVariables+100)
	value, err := json.Marshal(stored)
	if err != nil {
		t.Fatal(err)
	}
	put := store.Put(store.Item{Key: items[0].Key, Version: items[0].Version + 1, Value: value}, store.Always)
	if err := s.Write(t.Context(), store.Write{Token: "t", Ops: []store.Op{put}}); err != nil {
		t.Fatal(err)
	}
	b.step("A", vars(`{"list":[],"x":"z"}`))
	b.sweep()
	b.want("OrderAdded:A TaskAdded TaskStarted OrderStarted OrderStepStarted:A OrderStepEnded:Success OrderNodeChanged:F OrderForked OrderJoined OrderNodeChanged:N TaskEnded TaskClosed TaskAdded")
}
