package order_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
)

func TestAnOrderWalksAlongItsChain(t *testing.T) {
	onBoth(t, chains(ab()), func(t *testing.T, b *bench) {
		if o := b.add(nil); o.State.Type != projection.Due || o.NodeID != "A" || o.Version != 1 || string(o.Variables) != "{}" {
			t.Errorf("added: %+v", o)
		}
		b.want("OrderAdded:A TaskAdded")
		l := b.claim()
		b.is(projection.InTaskProcess, "A")
		b.want("TaskStarted OrderStarted OrderStepStarted:A")
		b.complete(l, ok)
		b.is(projection.Due, "B")
		b.want("OrderStepEnded:Success OrderNodeChanged:B TaskEnded TaskClosed TaskAdded")
		b.step("B", ok)
		b.want("TaskStarted OrderStepStarted:B OrderStepEnded:Success OrderNodeChanged:good OrderFinished:good TaskEnded TaskClosed")
		if _, err := b.Get(t.Context(), "/c", "1"); !errors.Is(err, order.ErrNoOrder) {
			t.Errorf("Get = %v, want ErrNoOrder", err)
		}
		b.add(nil) // the id is free again
	})
}

func TestAnErrorGoesToTheErrorNode(t *testing.T) {
	onBoth(t, chains(ab()), func(t *testing.T, b *bench) {
		b.add(nil)
		b.events()
		b.step("A", failed)
		b.want("TaskStarted OrderStarted OrderStepStarted:A OrderStepEnded:Error OrderNodeChanged:bad OrderFinished:bad TaskEnded TaskClosed")
	})
}

func TestAStepChangesVariables(t *testing.T) {
	onBoth(t, chains(ab()), func(t *testing.T, b *bench) {
		b.add(func(r *order.Request) { r.Variables = json.RawMessage(`{"a":1,"b":"x"}`) })
		l := b.claim()
		if string(l.Task.Payload) != `{"a":1,"b":"x"}` {
			t.Errorf("payload %s", l.Task.Payload)
		}
		for _, bad := range []string{`{"c":{}}`, `{"c":null}`, `{"c":[[1]]}`, `[]`, `{"c":"` + string(make([]byte, order.MaxVariables)) + `"}`} {
			if _, err := b.queue.Complete(t.Context(), l.Token, vars(bad)); !errors.Is(err, queue.ErrInvalid) {
				t.Errorf("Complete with variables %.20s = %v, want ErrInvalid", bad, err)
			}
		}
		b.complete(l, vars(`{"b":["y",2,true],"c":false}`))
		if o := b.is(projection.Due, "B"); string(o.Variables) != `{"a":1,"b":["y",2,true],"c":false}` {
			t.Errorf("variables %s", o.Variables)
		}
		if l := b.claim(); string(l.Task.Payload) != `{"a":1,"b":["y",2,true],"c":false}` {
			t.Errorf("payload %s", l.Task.Payload)
		}
	})
}

func TestSetbacks(t *testing.T) {
	chain := definition.JobChain{Path: "/c", Nodes: []definition.Node{
		{ID: "A", Job: "/back", OnError: definition.ErrorSetsBack, Next: "good", Error: "bad"}, {ID: "good"}, {ID: "bad"},
	}}
	onBoth(t, chains(chain), func(t *testing.T, b *bench) {
		b.add(nil)
		b.events()
		b.step("A", failed)
		b.want("TaskStarted OrderStarted OrderStepStarted:A OrderStepEnded:Keep OrderSetBack:A TaskEnded TaskClosed TaskAdded")
		o := b.is(projection.SetBack, "A")
		if until := b.now.Add(time.Minute); len(o.Obstacles) != 1 || !o.Obstacles[0].Until.Equal(until) || !o.State.At.Equal(until) {
			t.Errorf("%+v, want a setback until %v", o, until)
		}
		if l := b.claim(); l != nil {
			t.Error("the step is repeated before its time")
		}
		b.now = b.now.Add(time.Minute)
		b.step("A", failed)
		b.now = b.now.Add(time.Hour)
		b.events()
		b.step("A", failed) // above the maximum
		b.want("TaskStarted OrderStepStarted:A OrderStepEnded:Error OrderNodeChanged:bad OrderFinished:bad TaskEnded TaskClosed")
	})
}

func TestAnErrorThatSuspends(t *testing.T) {
	chain := definition.JobChain{Path: "/c", Nodes: []definition.Node{{ID: "A", Job: "/j"}, {ID: "good"}}}
	onBoth(t, chains(chain), func(t *testing.T, b *bench) {
		b.add(nil)
		b.events()
		b.step("A", failed)
		b.want("TaskStarted OrderStarted OrderStepStarted:A OrderStepEnded:Error OrderSuspended TaskEnded TaskClosed")
		if o := b.is(projection.Due, "A"); len(o.Obstacles) != 1 || o.Obstacles[0].Type != "Suspended" {
			t.Errorf("%+v", o)
		}
	})
}

func TestRangesEndNodesAndDelays(t *testing.T) {
	chain := definition.JobChain{Path: "/c", Nodes: []definition.Node{
		{ID: "A", Job: "/j", On: map[string]string{"7..9": "C"}}, {ID: "B", Job: "/j"},
		{ID: "C", Job: "/j", Delay: time.Minute}, {ID: "end"},
	}}
	onBoth(t, chains(chain), func(t *testing.T, b *bench) {
		b.add(func(r *order.Request) { r.EndNode = "C" })
		b.step("A", queue.Result{Outcome: queue.Failed, Code: 8})
		if l := b.claim(); l != nil {
			t.Error("the step at C starts before the node's delay is over")
		}
		b.now = b.now.Add(time.Minute)
		b.events()
		b.step("C", ok)
		b.want("TaskStarted OrderStepStarted:C OrderStepEnded:Success OrderFinished:C TaskEnded TaskClosed")
	})
}

// Nothing happens when the time of a start, or of a repeated step, comes. But then the step waits for a worker, and nothing else.
func TestAnOrderIsDueFromItsTimeOn(t *testing.T) {
	chain := ab()
	chain.Nodes[0].Job, chain.Nodes[0].OnError = "/back", definition.ErrorSetsBack
	onBoth(t, chains(chain), func(t *testing.T, b *bench) {
		until := func(state string) {
			t.Helper()
			b.is(state, "A")
			b.now = b.now.Add(time.Minute)
			if o := b.is(projection.Due, "A"); len(o.Obstacles) > 0 {
				t.Errorf("it has the obstacles %v", o.Obstacles)
			}
			for state, want := range map[string]int{state: 0, projection.Due: 1} {
				if n, err := b.Count(t.Context(), order.Filter{Paths: event.AllPaths(), State: state}); err != nil || n != want {
					t.Errorf("%d orders are %s, %v, want %d", n, state, err, want)
				}
			}
		}
		b.add(func(r *order.Request) { r.RunAt = b.now.Add(time.Minute) })
		until(projection.Planned)
		b.step("A", failed)
		until(projection.SetBack)
	})
}

func TestAPlannedOrderStartsAtItsTime(t *testing.T) {
	onBoth(t, chains(ab()), func(t *testing.T, b *bench) {
		at := b.now.Add(time.Hour)
		if o := b.add(func(r *order.Request) { r.RunAt = at }); o.State.Type != projection.Planned || !o.State.At.Equal(at) {
			t.Errorf("%+v, want it planned at %v", o, at)
		}
		if b.claim() != nil {
			t.Error("it starts before its time")
		}
		b.now = at
		b.step("A", ok)
	})
}

func TestAnOrderStaysOnItsVersion(t *testing.T) {
	onBoth(t, chains(ab()), func(t *testing.T, b *bench) {
		b.add(nil)
		b.declared.set = chains(definition.JobChain{Path: "/c", Nodes: []definition.Node{{ID: "A", Job: "/j"}, {ID: "X", Job: "/j"}, {ID: "end"}}})
		if o := b.add(func(r *order.Request) { r.ID = "2" }); o.Version != 2 {
			t.Errorf("version %d, want 2", o.Version)
		}
		b.step("A", ok)
		b.is(projection.Due, "B")
		b.step("A", ok)
		b.step("B", ok)
		b.step("X", ok)
		b.declared.set = chains(ab())
		if o := b.add(nil); o.Version != 3 {
			t.Errorf("version %d, want 3", o.Version)
		}
	})
}

func TestWhatCannotBeAdded(t *testing.T) {
	onBoth(t, chains(ab()), func(t *testing.T, b *bench) {
		b.add(nil)
		b.events()
		for name, test := range map[string]struct {
			request order.Request
			want    error
		}{
			"unknown chain":    {order.Request{Chain: "/none", ID: "2"}, order.ErrNoChain},
			"unknown node":     {order.Request{Chain: "/c", ID: "2", Node: "none"}, order.ErrNoNode},
			"unknown end node": {order.Request{Chain: "/c", ID: "2", EndNode: "none"}, order.ErrNoNode},
			"same id":          {order.Request{Chain: "/c", ID: "1"}, order.ErrExists},
			"no id":            {order.Request{Chain: "/c"}, order.ErrInvalid},
			"no part of a URL": {order.Request{Chain: "/c", ID: ".."}, order.ErrInvalid},
			"bad variables":    {order.Request{Chain: "/c", ID: "2", Variables: json.RawMessage(`{"a":{}}`)}, order.ErrInvalid},
		} {
			if _, err := b.Add(t.Context(), nil, test.request); !errors.Is(err, test.want) {
				t.Errorf("%s: Add = %v, want %v", name, err, test.want)
			}
		}
		b.want()
	})
}

func TestAnIdempotencyKeyAddsOnce(t *testing.T) {
	onBoth(t, chains(ab()), func(t *testing.T, b *bench) {
		once := &journal.Idempotency{Scope: "s", Key: "k", Fingerprint: [32]byte{1}}
		r := order.Request{Chain: "/c", ID: "1"}
		first, err := b.Add(t.Context(), once, r)
		if err != nil {
			t.Fatal(err)
		}
		b.step("A", ok)
		again, err := b.Add(t.Context(), once, r)
		if err != nil || !again.Replayed || again.Order.NodeID != "A" || first.Order.State != again.Order.State {
			t.Errorf("Add = %+v, %v, want %+v", again, err, first)
		}
		once.Fingerprint[0] = 2
		if _, err := b.Add(t.Context(), once, r); !errors.Is(err, journal.ErrIdempotencyMismatch) {
			t.Errorf("Add with another content = %v", err)
		}
	})
}

func TestReplaceWaitsForTheRunningStep(t *testing.T) {
	onBoth(t, chains(ab()), func(t *testing.T, b *bench) {
		again := func(r *order.Request) { r.Replace, r.Variables = true, json.RawMessage(`{"new":true}`) }
		b.add(again)
		b.events()
		b.add(again) // its step waits
		b.want("OrderRemoved OrderAdded:A TaskClosed TaskRemoved TaskAdded")
		l := b.claim()
		b.events()
		b.add(again)
		b.want()
		b.complete(l, ok)
		b.want("OrderStepEnded:Success OrderRemoved OrderAdded:A TaskEnded TaskClosed TaskAdded")
		b.step("A", ok)
		b.step("B", ok)
		if b.claim() != nil {
			t.Error("another step can be started")
		}
	})
}
