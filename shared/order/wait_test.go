package order_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/projection"
)

// waiting is the chain /c that begins with a wait W and goes on to a step B, after an error to a step E.
func waiting(w definition.Wait) *definition.Set {
	return chains(definition.JobChain{Path: "/c", Nodes: []definition.Node{
		{ID: "W", Wait: &w, Next: "B", Error: "E"}, {ID: "B", Job: "/j", Next: "good"}, {ID: "E", Job: "/j"}, {ID: "good"},
	}})
}

// emit puts a custom event on the journal.
func (b *bench) emit(kind, key, fields string) {
	b.t.Helper()
	e := event.Event{Type: kind, Key: event.Key{Path: key}, Fields: []byte(fields)}
	if _, err := b.journal.Emit(b.t.Context(), []event.Event{e}, nil); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) match() {
	b.t.Helper()
	if err := b.Match(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

func TestAWaitForATime(t *testing.T) {
	for name, w := range map[string]definition.Wait{
		"for": {For: time.Hour}, "until": {Until: "2026-01-01T01:00:00Z"}, "until a variable": {Until: "${at}"}, "until a text": {Until: "2026-01-01T${hour}:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, waiting(w), func(t *testing.T, b *bench) {
				b.add(func(r *order.Request) { r.Variables = json.RawMessage(`{"at":"2026-01-01T01:00:00Z","hour":"01"}`) })
				b.want("OrderAdded:W OrderWaiting:W:time")
				end := b.now.Add(time.Hour)
				if until := obstacle(t, b.is(projection.WaitingForResource, "W"), "Wait"); !until.Equal(end) {
					t.Errorf("it waits until %v, want %v", until, end)
				}
				if r, err := b.Why(t.Context(), "/c", "1"); err != nil || r.Code != order.ReasonWaiting || r.Details["until"] != end {
					t.Errorf("Why = %+v, %v", r, err)
				}
				b.now = end.Add(-1)
				b.sweep()
				b.want()
				b.now = end
				b.sweep()
				b.want("OrderNodeChanged:B TaskAdded")
			})
		})
	}
}

func TestAWaitForATimeThatIsOver(t *testing.T) {
	onBoth(t, waiting(definition.Wait{Until: "2025-01-01T00:00:00Z"}), func(t *testing.T, b *bench) {
		b.add(nil)
		b.want("OrderAdded:W OrderNodeChanged:B TaskAdded")
	})
}

// What a wait needs and is not there is an error of the node.
func TestAWaitWithoutItsVariable(t *testing.T) {
	for name, w := range map[string]definition.Wait{
		"no time": {Until: "${none}"}, "a bad time": {Until: "${bad}"}, "no value": {Event: "Paid", Where: map[string]any{"a": []any{"x${none}"}}},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, waiting(w), func(t *testing.T, b *bench) {
				b.add(func(r *order.Request) { r.Variables = json.RawMessage(`{"bad":"noon"}`) })
				b.want("OrderAdded:W OrderNodeChanged:E TaskAdded")
			})
		})
	}
}

// Which events a wait is for.
func TestAWaitForAnEvent(t *testing.T) {
	for name, test := range map[string]struct {
		wait definition.Wait
		no   [][3]string // type, key, fields
		yes  [3]string
	}{
		"type":                {definition.Wait{Event: "Paid"}, [][3]string{{"Pay", "/a", ``}, {"PaidOut", "/a", ``}}, [3]string{"Paid", "/a", `"x":1`}},
		"all custom events":   {definition.Wait{Event: "CustomEvent"}, nil, [3]string{"Paid", "", ``}},
		"a folder":            {definition.Wait{Event: "Paid", Path: "/a/"}, [][3]string{{"Paid", "/a", ``}, {"Paid", "/b/a", ``}, {"Paid", "", ``}}, [3]string{"Paid", "/a/b/c", ``}},
		"an object":           {definition.Wait{Event: "Paid", Path: "/a"}, [][3]string{{"Paid", "/a/b", ``}}, [3]string{"Paid", "/a", ``}},
		"the order's id":      {definition.Wait{Event: "Paid", Where: map[string]any{"order": "${id}"}}, [][3]string{{"Paid", "/a", ``}, {"Paid", "/a", `"order":"2"`}, {"Paid", "/a", `"order":1`}}, [3]string{"Paid", "/a", `"n":2,"order":"1"`}},
		"a number":            {definition.Wait{Event: "Paid", Where: map[string]any{"n": "${n}"}}, [][3]string{{"Paid", "/a", `"n":"7"`}, {"Paid", "/a", `"n":7.5`}}, [3]string{"Paid", "/a", `"n":7.0`}},
		"a constant":          {definition.Wait{Event: "Paid", Where: map[string]any{"n": 7.0, "ok": true}}, [][3]string{{"Paid", "/a", `"n":7`}, {"Paid", "/a", `"n":7,"ok":false`}}, [3]string{"Paid", "/a", `"ok":true,"n":7`}},
		"a text with both":    {definition.Wait{Event: "Paid", Where: map[string]any{"t": "${id}-${n}-${t}"}}, [][3]string{{"Paid", "/a", `"t":"1-7"`}}, [3]string{"Paid", "/a", `"t":"1-7-é\""`}},
		"a list":              {definition.Wait{Event: "Paid", Where: map[string]any{"l": "${l}"}}, [][3]string{{"Paid", "/a", `"l":[1]`}}, [3]string{"Paid", "/a", `"l":[1,"x"]`}},
		"an object's members": {definition.Wait{Event: "Paid", Where: map[string]any{"o": map[string]any{"a": "${id}", "b": nil}}}, [][3]string{{"Paid", "/a", `"o":{"a":"1"}`}}, [3]string{"Paid", "/a", `"o":{"b":null,"a":"1"}`}},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, waiting(test.wait), func(t *testing.T, b *bench) {
				b.emit(test.yes[0], test.yes[1], test.yes[2]) // before the order came
				b.add(func(r *order.Request) { r.Variables = json.RawMessage(`{"n":7,"t":"é\"","l":[1,"x"]}`) })
				obstacle(t, b.is(projection.WaitingForResource, "W"), "Wait")
				b.match()
				for _, e := range test.no {
					b.emit(e[0], e[1], e[2])
				}
				b.match()
				if r, err := b.Why(t.Context(), "/c", "1"); err != nil || r.Code != order.ReasonWaiting || r.Details["event"] != test.wait.Event {
					t.Errorf("Why = %+v, %v", r, err)
				}
				b.events()
				b.match()
				b.want()
				b.emit(test.yes[0], test.yes[1], test.yes[2])
				b.match()
				b.match()
				b.want(test.yes[0] + " OrderNodeChanged:B TaskAdded")
				b.step("B", ok)
			})
		})
	}
}

func TestAWaitForABuiltInEvent(t *testing.T) {
	onBoth(t, waiting(definition.Wait{Event: "TaskEnded", Path: "/j", Where: map[string]any{"outcome": "ok"}}), func(t *testing.T, b *bench) {
		b.add(nil)
		b.add(func(r *order.Request) { r.ID, r.Node = "2", "B" })
		b.step("B", ok)
		b.match()
		b.is(projection.Due, "B")
	})
}

func TestAWaitForAnEventTimesOut(t *testing.T) {
	onBoth(t, waiting(definition.Wait{Event: "Paid", Timeout: time.Hour}), func(t *testing.T, b *bench) {
		b.add(nil)
		b.add(func(r *order.Request) { r.ID = "2" })
		b.want("OrderAdded:W OrderWaiting:W:event OrderAdded:W OrderWaiting:W:event")
		b.do(order.Act{Kind: order.Suspend}, nil)
		b.events()
		b.now = b.now.Add(time.Hour)
		b.sweep()
		b.want("OrderNodeChanged:E OrderNodeChanged:E TaskAdded")
		obstacle(t, b.is(projection.NotPlanned, "E"), "Suspended")
		b.emit("Paid", "", "")
		b.match()
		b.want("Paid")
	})
}

// An event that came before the timeout counts, though nobody has looked until then.
func TestAnEventComesBeforeTheTimeout(t *testing.T) {
	onBoth(t, waiting(definition.Wait{Event: "Paid", Timeout: time.Hour}), func(t *testing.T, b *bench) {
		b.add(nil)
		b.emit("Paid", "", "")
		b.now = b.now.Add(time.Hour)
		b.sweep()
		b.is(projection.Due, "B")
	})
}

func TestAWaitWithoutAnErrorNodeSuspends(t *testing.T) {
	set := waiting(definition.Wait{Event: "Paid", Timeout: time.Hour})
	set.JobChains[0].Nodes[0].Error = ""
	onBoth(t, set, func(t *testing.T, b *bench) {
		b.add(nil)
		b.now = b.now.Add(time.Hour)
		b.sweep()
		b.want("OrderAdded:W OrderWaiting:W:event OrderSuspended OrderNodeChanged:W")
		b.emit("Paid", "", "")
		b.match()
		b.do(order.Act{Kind: order.Resume}, nil) // it waits anew
		b.want("Paid OrderResumed OrderWaiting:W:event")
		b.match()
		b.want()
		b.emit("Paid", "", "")
		b.match()
		b.is(projection.Due, "B")
	})
}

// A suspended order does not miss its event: it goes to the next node, and stays suspended there.
func TestAnEventForASuspendedOrder(t *testing.T) {
	onBoth(t, waiting(definition.Wait{Event: "Paid"}), func(t *testing.T, b *bench) {
		b.add(nil)
		b.do(order.Act{Kind: order.Suspend}, nil)
		b.do(order.Act{Kind: order.Resume}, nil)
		b.do(order.Act{Kind: order.Suspend}, nil)
		b.want("OrderAdded:W OrderWaiting:W:event OrderSuspended OrderResumed OrderSuspended")
		b.emit("Paid", "", "")
		b.match()
		b.want("Paid OrderNodeChanged:B")
		b.do(order.Act{Kind: order.Resume}, nil)
		b.step("B", ok)
	})
}

// Whoever leaves a wait is not found by its event any more; who comes back waits for the next one.
func TestActsOnAnOrderThatWaits(t *testing.T) {
	onBoth(t, waiting(definition.Wait{Event: "Paid"}), func(t *testing.T, b *bench) {
		again := func(r *order.Request) { r.Replace = true }
		b.add(nil)
		b.emit("Paid", "", "")
		b.add(again) // it waits anew, in one write with the end of the former one
		b.match()
		b.is(projection.WaitingForResource, "W")
		b.do(order.Act{Kind: order.Suspend}, nil)
		b.emit("Paid", "", "")
		b.do(order.Act{Kind: order.Reset}, nil)
		b.match()
		b.is(projection.WaitingForResource, "W")
		b.do(order.Act{Kind: order.Skip}, nil)
		b.events()
		b.emit("Paid", "", "")
		b.match()
		b.want("Paid")
		b.do(order.Act{Kind: order.SetNode, Node: "W"}, nil)
		b.match()
		b.is(projection.WaitingForResource, "W")
		b.do(order.Act{Kind: order.Remove}, nil)
		b.emit("Paid", "", "")
		b.match()
	})
}

// An order that waits in a circle goes round once for each event.
func TestAWaitThatLeadsBackToItself(t *testing.T) {
	set := waiting(definition.Wait{Event: "Paid"})
	set.JobChains[0].Nodes[0].Next = "W"
	onBoth(t, set, func(t *testing.T, b *bench) {
		b.add(nil)
		b.events()
		b.emit("Paid", "", "")
		b.emit("Paid", "", "") // nobody looked in between: the order came to wait again behind it
		b.match()
		b.want("Paid Paid OrderNodeChanged:W OrderWaiting:W:event")
		b.match()
		b.emit("Paid", "", "")
		b.match()
		b.want("Paid OrderNodeChanged:W OrderWaiting:W:event")
	})
}

func TestManyOrdersWait(t *testing.T) {
	onBoth(t, waiting(definition.Wait{Event: "Paid", Where: map[string]any{"order": "${id}"}}), func(t *testing.T, b *bench) {
		const orders = 50
		for i := range orders {
			b.add(func(r *order.Request) { r.ID = fmt.Sprint(i) })
		}
		for i := range orders {
			b.emit("Paid", "", fmt.Sprintf(`"order":"%d"`, i))
		}
		b.events()
		b.match()
		if got := b.events(); strings.Count(got, "OrderNodeChanged:B") != orders {
			t.Errorf("events: %s", got)
		}
	})
}

// What orders wait for is noted by the first of them: also where several come to wait in one write, as the children of a fork do.
func TestTheFirstToWaitComeInOneWrite(t *testing.T) {
	for name, first := range map[string]func(*bench){
		"none waited":    func(*bench) {},
		"another waited": func(b *bench) { b.on("/w", "1") },
	} {
		t.Run(name, func(t *testing.T) {
			set := waiting(definition.Wait{Event: "Y"})
			set.JobChains[0].Path = "/w"
			wait := []definition.Node{{Wait: &definition.Wait{Event: "X"}}}
			set.JobChains = append(set.JobChains, definition.JobChain{Path: "/c", Nodes: []definition.Node{
				{ID: "F", Fork: &definition.Fork{Branches: map[string][]definition.Node{"a": wait, "b": wait, "c": wait}}}, {ID: "end"},
			}})
			onBoth(t, set, func(t *testing.T, b *bench) {
				first(b)
				b.add(nil)
				b.sweep()
				b.emit("X", "k", "")
				b.match()
				b.sweep()
				b.absent("1", "1!a", "1!b", "1!c")
			})
		})
	}
}
