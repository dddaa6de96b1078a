package order_test

import (
	"errors"
	"fmt"
	"time"

	"encoding/json"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/journal"

	"strings"
	"testing"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
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

// counted returns how often each of the new events is there.
func (b *bench) counted() map[string]int {
	b.t.Helper()
	counts := map[string]int{}
	for _, e := range strings.Fields(b.events()) {
		counts[e]++
	}
	return counts
}

// wantCounts compares how often events are among the new ones.
func (b *bench) wantCounts(want map[string]int) {
	b.t.Helper()
	got := b.counted()
	for e, n := range want {
		if got[e] != n {
			b.t.Errorf("%d events %s, want %d; events: %v", got[e], e, n, got)
		}
	}
}

// joined returns the fields of the OrderJoined of the order 1.
func (b *bench) joined() (all []typed.OrderJoined) {
	b.t.Helper()
	read, err := b.journal.ReadAfter(b.t.Context(), journal.Request{Limit: 100_000})
	if err != nil {
		b.t.Fatal(err)
	}
	for i := range read.Events {
		if e := &read.Events[i]; e.Type == event.OrderJoined && e.Key.Path == "/c,1" {
			all = append(all, typed.ReadOrder[typed.OrderJoined](e))
		}
	}
	return all
}

// absent demands that there is no order with that id.
func (b *bench) absent(ids ...string) {
	b.t.Helper()
	for _, id := range ids {
		if o, err := b.Get(b.t.Context(), "/c", id); !errors.Is(err, order.ErrNoOrder) {
			b.t.Errorf("order %s: %+v, %v, want none", id, o, err)
		}
	}
}

// What a fork brings about names its OrderForked, also in the writes that come after that one.
func TestWhatAForkBringsAboutNamesIt(t *testing.T) {
	onBoth(t, chains(branches(nil)), func(t *testing.T, b *bench) {
		b.add(nil)
		b.work(func(string, string) queue.Result { return ok })
		read, err := b.journal.ReadAfter(t.Context(), journal.Request{Limit: 1000, Causes: true})
		if err != nil {
			t.Fatal(err)
		}
		var forked event.ID
		came := map[event.ID]bool{} // what has brought an order to a node, and no step about yet
		seen := 0
		for i := range read.Events {
			e := &read.Events[i]
			switch e.Type {
			case event.OrderForked:
				forked = e.ID
			case event.OrderAdded, event.OrderJoined:
				if seen++; e.Cause.ID() != forked {
					t.Errorf("%s of %s names %d, want %d", e.Type, e.Key.Path, e.Cause.ID(), forked)
				}
				came[e.ID] = true
			case event.OrderNodeChanged:
				came[e.ID] = true
			case event.TaskAdded:
				if !came[e.Cause.ID()] {
					t.Errorf("%s of %s names %d, which is not of its own order", e.Type, e.Key.TaskID, e.Cause.ID())
				}
				delete(came, e.Cause.ID())
			default:
				if e.Cause.ID() == 0 {
					t.Errorf("%s of %s names no cause", e.Type, e.Key.Path)
				}
			}
		}
		if seen != 4 { // the order, two children, and the join
			t.Errorf("%d events were compared, want 4", seen)
		}
	})
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

func TestAForkMakesAChildForEachElement(t *testing.T) {
	onBoth(t, chains(each(nil)), func(t *testing.T, b *bench) {
		b.add(list(`"p",2,true`))
		b.sweep()
		b.events()
		for i, item := range []string{`"p"`, `2`, `true`} {
			l := b.claim()
			want := fmt.Sprintf(`{"index":%d,"item":%s,"x":"y"}`, i, item)
			if l.Task.Order.Path() != fmt.Sprintf("/c,1!%d", i) || l.Task.Order.Node != "F/each" || string(l.Task.Payload) != want {
				t.Errorf("%+v with the payload %s, want %s", l.Task.Order, l.Task.Payload, want)
			}
			b.complete(l, ok)
		}
		b.sweep()
		b.step("N", ok)
		b.wantCounts(map[string]int{"OrderJoined": 1, "OrderFinished:F/each": 3, "OrderFinished:good": 1})
	})
}

func TestHowAForkIsJoined(t *testing.T) {
	atLeast := func(n int, onFailed string) func(*definition.Node) {
		return func(fork *definition.Node) {
			fork.Join, fork.Fork.OnFailed = &definition.Join{AtLeast: n}, onFailed
		}
	}
	all := func(onFailed string) func(*definition.Node) {
		return func(fork *definition.Node) { fork.Fork.OnFailed = onFailed }
	}
	for name, test := range map[string]struct {
		fork     func(*definition.Node)
		elements string
		failing  []string
		joined   typed.OrderJoined
		ran      string // first by first
		bad      bool
	}{
		"no element":                    {nil, ``, nil, typed.OrderJoined{}, "1:N", false},
		"all succeed":                   {nil, `1,2`, nil, typed.OrderJoined{Succeeded: 2}, "1!0 1!1 1:N", false},
		"one fails, the rest goes on":   {nil, `1,2,3`, []string{"1!0"}, typed.OrderJoined{Failed: 1}, "1!0 1!1 1!2", true},
		"one fails, the rest is ended":  {all("cancel"), `1,2,3`, []string{"1!1"}, typed.OrderJoined{Succeeded: 1, Failed: 1}, "1!0 1!1", true},
		"enough":                        {atLeast(2, ""), `1,2,3`, []string{"1!0"}, typed.OrderJoined{Succeeded: 2, Failed: 1}, "1!0 1!1 1!2 1:N", false},
		"enough, before the rest":       {atLeast(1, ""), `1,2`, nil, typed.OrderJoined{Succeeded: 1}, "1!0 1!1 1:N", false},
		"enough, and the rest is ended": {atLeast(1, "cancel"), `1,2`, nil, typed.OrderJoined{Succeeded: 1}, "1!0 1:N", false},
		"too many fail":                 {atLeast(2, ""), `1,2,3`, []string{"1!0", "1!1"}, typed.OrderJoined{Failed: 2}, "1!0 1!1 1!2", true},
		"one fails before enough":       {atLeast(1, "cancel"), `1,2,3`, []string{"1!0"}, typed.OrderJoined{Failed: 1}, "1!0", true},
		"too few from the beginning":    {atLeast(3, ""), `1,2`, nil, typed.OrderJoined{}, "", true},
		"too few, of none":              {atLeast(1, ""), ``, nil, typed.OrderJoined{}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, chains(each(test.fork)), func(t *testing.T, b *bench) {
				b.add(list(test.elements))
				var ran []string
				for _, r := range b.work(failing(test.failing...)) {
					ran = append(ran, strings.Replace(r, ":F/each", "", 1))
				}
				if got := strings.Join(ran, " "); got != test.ran {
					t.Errorf("ran %s, want %s", got, test.ran)
				}
				if got := b.joined(); len(got) != 1 || got[0] != test.joined {
					t.Errorf("joined %+v, want %+v once", got, test.joined)
				}
				end := "OrderFinished:good"
				if test.bad {
					end = "OrderFinished:bad"
				}
				b.wantCounts(map[string]int{end: 1, "OrderForked": 1})
				b.absent("1", "1!0", "1!1", "1!2")
				b.nothingLeft()
			})
		})
	}
}

// Children that are ended while their steps run are asked to stop.
func TestEndedChildrenAreToStop(t *testing.T) {
	for name, test := range map[string]struct {
		onFailed string
		end      func(b *bench, first *queue.Lease)
		stops    bool
	}{
		"by one that failed":         {"cancel", func(b *bench, first *queue.Lease) { b.complete(first, failed) }, true},
		"not by the order's removal": {"", func(b *bench, _ *queue.Lease) { b.do(order.Act{Kind: order.Remove}, nil) }, false},
		"not where they may go on":   {"wait", func(b *bench, first *queue.Lease) { b.complete(first, failed) }, false},
		"not before anything failed": {"cancel", func(b *bench, first *queue.Lease) { b.complete(first, ok) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, chains(each(func(fork *definition.Node) { fork.Fork.OnFailed = test.onFailed })), func(t *testing.T, b *bench) {
				b.add(list(`1,2`))
				b.sweep()
				first, second := b.claim(), b.claim()
				test.end(b, first)
				b.sweep()
				alive, err := b.queue.Heartbeat(t.Context(), second.Token, queue.Beat{})
				if err != nil || alive.Stop != test.stops {
					t.Errorf("Heartbeat = %+v, %v, want a stop: %t", alive, err, test.stops)
				}
				if test.stops {
					b.complete(second, queue.Result{Outcome: queue.Cancel})
					b.absent("1!1")
				}
			})
		})
	}
}

// nothingLeft demands that no alarm and no note is left in the store.
func (b *bench) nothingLeft() {
	b.t.Helper()
	page, err := b.store.Query(b.t.Context(), store.Range{Table: store.Work, Partition: "orders-due"})
	if err != nil {
		b.t.Fatal(err)
	}
	for _, item := range page.Items {
		b.t.Errorf("left: %s %s", item.Key.Sort, item.Value)
	}
}

func TestAForkWithoutItsList(t *testing.T) {
	for name, variables := range map[string]string{"no variable": `{}`, "no list": `{"list":"a"}`} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, chains(each(nil), definition.JobChain{Path: "/d", Nodes: []definition.Node{
				{ID: "F", Fork: &definition.Fork{Each: "list", Job: "/j"}}, {ID: "good"},
			}}), func(t *testing.T, b *bench) {
				b.add(func(r *order.Request) { r.Variables = json.RawMessage(variables) })
				b.want("OrderAdded:F OrderNodeChanged:bad OrderFinished:bad")
				b.add(func(r *order.Request) { r.Chain, r.Variables = "/d", json.RawMessage(variables) })
				b.want("OrderAdded:F OrderSuspended")
				resume := order.Act{Kind: order.Resume, Variables: json.RawMessage(`{"list":[]}`)}
				if err := b.Act(t.Context(), "/d", "1", resume); err != nil {
					t.Fatal(err)
				}
				b.want("OrderResumed OrderForked OrderJoined OrderNodeChanged:good OrderFinished:good")
			})
		})
	}
}

func TestHowAChildFails(t *testing.T) {
	branch := func(nodes ...definition.Node) definition.JobChain {
		return branches(func(fork *definition.Node) { fork.Fork.Branches["a"] = nodes })
	}
	for name, test := range map[string]struct {
		chain definition.JobChain
		fails bool
	}{
		"a step without an error node": {branch(definition.Node{Job: "/j"}), true},
		"an error node that succeeds": {branch(definition.Node{ID: "X", Job: "/j", Next: "end", Error: "E"},
			definition.Node{ID: "E", Job: "/again"}, definition.Node{ID: "end"}), false},
		"an end for errors": {branch(definition.Node{ID: "X", Job: "/j", Next: "end", Error: "E"},
			definition.Node{ID: "end"}, definition.Node{ID: "E"}), true},
		"a nested chain's error": {branch(definition.Node{ID: "X", Chain: "/d"}), true},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, chains(test.chain, definition.JobChain{Path: "/d", Nodes: []definition.Node{{ID: "D", Job: "/j"}}}), func(t *testing.T, b *bench) {
				b.add(nil)
				b.work(func(id, node string) queue.Result {
					if id == "1!a" && node != "E" {
						return failed
					}
					return ok
				})
				want := typed.OrderJoined{Succeeded: 2}
				if test.fails {
					want = typed.OrderJoined{Succeeded: 1, Failed: 1}
				}
				if got := b.joined(); len(got) != 1 || got[0].Failed != want.Failed {
					t.Errorf("joined %+v, want %+v", got, want)
				}
				b.absent("1!a")
			})
		})
	}
}

func TestAChildThatIsToBeSuspendedIsRepaired(t *testing.T) {
	chain := branches(func(fork *definition.Node) {
		fork.Fork.Branches["a"] = []definition.Node{{Job: "/j", OnError: definition.ErrorSuspends}}
	})
	onBoth(t, chains(chain), func(t *testing.T, b *bench) {
		b.add(nil)
		b.work(failing("1!a"))
		b.is(projection.WaitingForResource, "F")
		if o, err := b.Get(t.Context(), "/c", "1!a"); err != nil || len(o.Obstacles) != 1 || o.Obstacles[0].Type != "Suspended" {
			t.Errorf("%+v, %v", o, err)
		}
		if err := b.Act(t.Context(), "/c", "1!a", order.Act{Kind: order.Reset}); err != nil {
			t.Fatal(err)
		}
		b.work(succeed)
		b.absent("1", "1!a")
	})
}

func TestForksWithinForks(t *testing.T) {
	chain := branches(func(fork *definition.Node) {
		fork.Fork.Branches["a"] = []definition.Node{{ID: "G", Fork: &definition.Fork{Each: "list", Job: "/j"}}, {ID: "H", Job: "/j"}}
	})
	onBoth(t, chains(chain), func(t *testing.T, b *bench) {
		b.add(list(`1,2`))
		if got := strings.Join(b.work(succeed), " "); got != "1!b:B 1!a!0:G/each 1!a!1:G/each 1!a:H 1:N" {
			t.Error(got)
		}
		b.add(list(`1,2`))
		b.sweep()
		b.events()
		b.do(order.Act{Kind: order.Remove}, nil)
		b.sweep()
		b.absent("1", "1!a", "1!b", "1!a!0", "1!a!1")
		b.wantCounts(map[string]int{"OrderRemoved": 5, "TaskRemoved": 3})
		b.nothingLeft()
	})
}

func TestActsOnAnOrderThatWaitsForItsChildren(t *testing.T) {
	onBoth(t, chains(branches(nil)), func(t *testing.T, b *bench) {
		b.add(nil)
		b.do(order.Act{Kind: order.Suspend}, nil)
		if o := b.is(projection.WaitingForResource, "F"); len(o.Obstacles) != 2 {
			t.Errorf("%+v, want it suspended, and to wait for its children", o)
		}
		b.work(succeed)
		b.is(projection.WaitingForResource, "F")
		b.events()
		b.do(order.Act{Kind: order.RunNow}, order.ErrState)
		b.do(order.Act{Kind: order.Resume}, nil)
		b.want("OrderResumed OrderJoined OrderNodeChanged:N TaskAdded")
		b.do(order.Act{Kind: order.SetNode, Node: "F"}, nil) // all children once more
		b.sweep()
		b.events()
		b.do(order.Act{Kind: order.SetNode, Node: "F"}, order.ErrState)
		b.do(order.Act{Kind: order.SetNode, Node: "B"}, order.ErrNoNode)
		b.do(order.Act{Kind: order.Reset}, order.ErrState)
		b.do(order.Act{Kind: order.Suspend}, nil)
		l := b.claim()
		b.do(order.Act{Kind: order.Reset}, nil) // anew, with new children
		b.complete(l, ok)
		if got := strings.Join(b.work(succeed), " "); got != "1!b:B 1!a:F/a/1 1!a:F/a/2 1:N" && got != "1!a:F/a/1 1!b:B 1!a:F/a/2 1:N" {
			t.Error(got)
		}
		b.add(nil)
		b.sweep()
		b.do(order.Act{Kind: order.Skip}, nil)
		if got := strings.Join(b.work(succeed), " "); got != "1:N" {
			t.Error(got)
		}
		b.nothingLeft()
	})
}

func TestActsOnAChild(t *testing.T) {
	onBoth(t, chains(branches(nil)), func(t *testing.T, b *bench) {
		act := func(a order.Act, want error) {
			t.Helper()
			if err := b.Act(t.Context(), "/c", "1!a", a); !errors.Is(err, want) {
				t.Errorf("%s = %v, want %v", a.Kind, err, want)
			}
		}
		b.add(nil)
		b.sweep()
		act(order.Act{Kind: order.SetNode, Node: "N"}, order.ErrNoNode)
		act(order.Act{Kind: order.SetNode, Node: "F/a/2"}, nil)
		act(order.Act{Kind: order.Skip}, nil)
		b.absent("1!a")
		act(order.Act{Kind: order.Reset}, order.ErrNoOrder)
		b.work(succeed)
		b.absent("1")
		b.add(nil)
		b.sweep()
		act(order.Act{Kind: order.Remove}, nil)
		b.work(succeed)
		if got := b.joined(); len(got) != 2 || got[0].Succeeded != 2 || got[1].Failed != 1 {
			t.Errorf("%+v", got)
		}
		_, err := b.Add(t.Context(), nil, order.Request{Chain: "/c", ID: "2", Node: "B"})
		if !errors.Is(err, order.ErrNoNode) {
			t.Errorf("Add at a branch's node = %v", err)
		}
	})
}

func TestAnotherOrderHasTheIDOfAChild(t *testing.T) {
	onBoth(t, chains(branches(nil)), func(t *testing.T, b *bench) {
		b.add(func(r *order.Request) { r.ID, r.RunAt = "1!a", b.now.Add(time.Hour) })
		b.add(nil)
		b.work(succeed)
		if got := b.joined(); len(got) != 1 || got[0] != (typed.OrderJoined{Failed: 1}) {
			t.Errorf("%+v", got)
		}
		if _, err := b.Get(t.Context(), "/c", "1!a"); err != nil {
			t.Error(err)
		}
	})
}

// TestChildrenThatAreLeft: a join that is decided leaves children behind, and the order comes back to the fork before they have ended.
func TestChildrenThatAreLeft(t *testing.T) {
	chain := branches(func(fork *definition.Node) { fork.Join = &definition.Join{AtLeast: 1} })
	chain.Nodes[1].Next = "F"
	onBoth(t, chains(chain), func(t *testing.T, b *bench) {
		b.add(nil)
		b.sweep()
		a := b.claim() // 1!a runs until the second fork
		b.step("B", ok)
		b.sweep()
		b.step("N", ok)
		b.sweep()
		b.events()
		b.complete(a, ok)
		b.want("OrderStepEnded:Success OrderRemoved OrderAdded:F/a/1 TaskEnded TaskClosed TaskAdded")
		b.step("B", failed)
		b.now = b.now.Add(time.Millisecond)
		b.step("F/a/1", ok)
		b.step("F/a/2", ok)
		b.sweep()
		if got := b.joined(); len(got) != 2 || got[1] != (typed.OrderJoined{Succeeded: 1, Failed: 1}) {
			t.Errorf("%+v", got)
		}
	})
}

func TestChildrenDoNotCountForMaxOrders(t *testing.T) {
	chain := branches(nil)
	chain.MaxOrders = 1
	onBoth(t, chains(chain), func(t *testing.T, b *bench) {
		b.add(nil)
		b.add(func(r *order.Request) { r.ID = "2" })
		if got := strings.Join(b.work(succeed), " "); !strings.HasPrefix(got, "1!a:F/a/1 1!b:B 1!a:F/a/2 1:N 2!a:") || !strings.HasSuffix(got, "2:N") {
			t.Error(got)
		}
	})
}

func TestAStoppedChainKeepsChildren(t *testing.T) {
	onBoth(t, chains(each(nil)), func(t *testing.T, b *bench) {
		b.add(list(`1,2,3`))
		if err := b.StopChain(t.Context(), "/c", true); err != nil {
			t.Fatal(err)
		}
		if ran := b.work(succeed); ran != nil {
			t.Error(ran)
		}
		if err := b.StopChain(t.Context(), "/c", false); err != nil {
			t.Fatal(err)
		}
		if ran := b.work(succeed); len(ran) != 4 {
			t.Error(ran)
		}
	})
}

func TestAForkAfterADelay(t *testing.T) {
	chain := branches(func(fork *definition.Node) { fork.Delay = time.Minute })
	onBoth(t, chains(chain), func(t *testing.T, b *bench) {
		b.add(nil)
		b.sweep()
		b.want("OrderAdded:F")
		b.is(projection.Planned, "F")
		b.now = b.now.Add(time.Minute)
		if ran := b.work(succeed); len(ran) != 4 {
			t.Error(ran)
		}
		b.absent("1")
	})
}

// TestAForkWithoutRun: where nobody runs between requests, each write is followed by what it makes due.
func TestAForkWithoutRun(t *testing.T) {
	onBoth(t, chains(branches(nil)), func(t *testing.T, b *bench) {
		b.SweepAfterWrites()
		b.add(nil)
		b.want("OrderAdded:F OrderForked OrderAdded:F/a/1 OrderAdded:B TaskAdded TaskAdded")
		b.step("F/a/1", ok)
		b.step("B", ok)
		b.step("F/a/2", ok)
		b.step("N", ok)
		b.wantCounts(map[string]int{"OrderJoined": 1, "OrderFinished:good": 1})
		b.nothingLeft()
	})
}

// TestAnErrandThatCannotBeRun does not keep others from being run.
func TestAnErrandThatCannotBeRun(t *testing.T) {
	onBoth(t, chains(branches(nil)), func(t *testing.T, b *bench) {
		bad := store.Item{Key: store.Key{Table: store.Work, Partition: "orders-due", Sort: "0000000000000000/c,0"}, Version: 1, Value: []byte(`{"do":"?"}`)}
		if err := b.store.Write(t.Context(), store.Write{Token: "t", Ops: []store.Op{store.Put(bad, store.Always)}}); err != nil {
			t.Fatal(err)
		}
		b.add(nil)
		if err := b.Sweep(t.Context()); err == nil {
			t.Error("a damaged errand is no error")
		}
		b.want("OrderAdded:F OrderForked OrderAdded:F/a/1 OrderAdded:B TaskAdded TaskAdded")
	})
}

func TestTheTimeoutOfAChainEndsItsChildren(t *testing.T) {
	chain := branches(nil)
	chain.Timeout = time.Minute
	chain.Nodes[0], chain.Nodes[1] = definition.Node{ID: "N", Job: "/j"}, chain.Nodes[0]
	onBoth(t, chains(chain), func(t *testing.T, b *bench) {
		b.add(nil)
		b.step("N", ok)
		b.sweep()
		b.events()
		b.do(order.Act{Kind: order.Suspend}, nil)
		b.now = b.now.Add(time.Minute)
		b.sweep()
		b.want("OrderSuspended")
		b.do(order.Act{Kind: order.Resume}, nil)
		b.want("OrderResumed")
		b.sweep()
		b.wantCounts(map[string]int{"OrderNodeChanged:bad": 1, "OrderFinished:bad": 1, "OrderRemoved": 2, "OrderJoined": 0})
		b.absent("1", "1!a", "1!b")
		b.nothingLeft()
	})
}
