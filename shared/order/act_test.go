package order_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
)

// do acts on the order 1; want is the error that it must have.
func (b *bench) do(a order.Act, want error) {
	b.t.Helper()
	before := b.seen
	if err := b.Act(b.t.Context(), "/c", "1", a); !errors.Is(err, want) {
		b.t.Errorf("%s = %v, want %v", a.Kind, err, want)
	} else if want != nil {
		if got := b.events(); got != "" {
			b.t.Errorf("%s was refused, and wrote %s", a.Kind, got)
		}
		b.seen = before
	}
}

func TestSuspendAndResume(t *testing.T) {
	onBoth(t, chains(ab()), func(t *testing.T, b *bench) {
		b.add(nil)
		b.events()
		b.do(order.Act{Kind: order.Resume}, order.ErrState)
		b.do(order.Act{Kind: order.Suspend}, nil)
		b.want("OrderSuspended TaskClosed TaskRemoved")
		b.is(projection.NotPlanned, "A")
		if b.claim() != nil {
			t.Error("a suspended order's step starts")
		}
		b.do(order.Act{Kind: order.Suspend}, order.ErrState)
		b.do(order.Act{Kind: order.Resume, Variables: json.RawMessage(`{"v":null}`)}, order.ErrInvalid)
		b.do(order.Act{Kind: order.Resume, Variables: json.RawMessage(`{"v":1}`)}, nil)
		b.want("OrderResumed TaskAdded")
		l := b.claim()
		if string(l.Task.Payload) != `{"v":1}` {
			t.Errorf("payload %s", l.Task.Payload)
		}
		b.events()
		b.do(order.Act{Kind: order.Suspend}, nil) // while the step runs
		b.want("OrderSuspended")
		b.complete(l, ok)
		b.want("OrderStepEnded:Success OrderNodeChanged:B TaskEnded TaskClosed")
		b.is(projection.Due, "B")
		b.do(order.Act{Kind: order.Resume}, nil)
		b.want("OrderResumed TaskAdded")
	})
}

func TestAnOrderThatIsSuspendedAtItsEndIsBlacklisted(t *testing.T) {
	onBoth(t, chains(ab()), func(t *testing.T, b *bench) {
		b.add(nil)
		b.step("A", ok)
		l := b.claim()
		b.do(order.Act{Kind: order.Suspend}, nil)
		b.events()
		b.complete(l, ok)
		b.want("OrderStepEnded:Success OrderSuspended OrderNodeChanged:good TaskEnded TaskClosed")
		b.is(projection.Blacklisted, "good")
		if _, err := b.Add(t.Context(), nil, order.Request{Chain: "/c", ID: "1"}); !errors.Is(err, order.ErrExists) {
			t.Errorf("Add = %v, want ErrExists", err)
		}
		b.do(order.Act{Kind: order.Skip}, order.ErrState)
		b.do(order.Act{Kind: order.Resume}, nil)
		b.want("OrderResumed OrderFinished:good")
		b.do(order.Act{Kind: order.Resume}, order.ErrNoOrder)
	})
}

func TestSetNodeSkipAndReset(t *testing.T) {
	onBoth(t, chains(ab()), func(t *testing.T, b *bench) {
		b.add(nil)
		b.events()
		b.do(order.Act{Kind: order.SetNode, Node: "none"}, order.ErrNoNode)
		b.do(order.Act{Kind: order.SetNode, Node: "A"}, order.ErrState)
		b.do(order.Act{Kind: order.Reset}, order.ErrState)
		b.do(order.Act{Kind: order.SetNode, Node: "B"}, nil)
		b.want("OrderNodeChanged:B TaskClosed TaskRemoved TaskAdded")
		b.do(order.Act{Kind: order.Suspend}, nil)
		b.events()
		b.do(order.Act{Kind: order.Reset}, nil)
		b.want("OrderResumed OrderNodeChanged:A TaskAdded")
		b.do(order.Act{Kind: order.Skip}, nil)
		b.want("OrderNodeChanged:B TaskClosed TaskRemoved TaskAdded")
		l := b.claim()
		b.events()
		b.do(order.Act{Kind: order.Skip}, order.ErrState)
		b.do(order.Act{Kind: order.SetNode, Node: "A"}, nil) // at the step's end
		b.do(order.Act{Kind: order.SetNode, Node: "A"}, order.ErrState)
		b.complete(l, ok)
		b.want("OrderStepEnded:Success OrderNodeChanged:A TaskEnded TaskClosed TaskAdded")
		b.do(order.Act{Kind: order.SetNode, Node: "good"}, nil)
		b.want("OrderNodeChanged:good OrderFinished:good TaskClosed TaskRemoved")
	})
}

func TestRunNow(t *testing.T) {
	onBoth(t, chains(ab()), func(t *testing.T, b *bench) {
		b.add(func(r *order.Request) { r.RunAt = b.now.Add(time.Hour) })
		b.events()
		b.do(order.Act{Kind: order.RunNow}, nil)
		b.want("OrderResumed TaskClosed TaskRemoved TaskAdded")
		b.is(projection.Due, "A")
		b.do(order.Act{Kind: order.RunNow}, order.ErrState)
		b.step("A", ok)
	})
}

func TestRunNowEndsAWaitForATime(t *testing.T) {
	chain := definition.JobChain{Path: "/c", Nodes: []definition.Node{
		{ID: "T", Wait: &definition.Wait{For: time.Hour}}, {ID: "E", Wait: &definition.Wait{Event: "X", Timeout: time.Hour}}, {ID: "end"},
	}}
	onBoth(t, chains(chain), func(t *testing.T, b *bench) {
		b.add(nil)
		b.events()
		b.do(order.Act{Kind: order.RunNow}, nil)
		b.want("OrderNodeChanged:E OrderWaiting:E:event")
		b.do(order.Act{Kind: order.RunNow}, order.ErrState) // it waits for more than a time
	})
}

// A step that waits for its next attempt begins anew, with all its attempts.
func TestRunNowBeginsAStepAnew(t *testing.T) {
	chain := ab()
	chain.Nodes[0].Job = "/again"
	onBoth(t, chains(chain), func(t *testing.T, b *bench) {
		b.add(nil)
		b.complete(b.claim(), queue.Result{Outcome: queue.Failed, RetryDelay: time.Hour})
		b.events()
		b.do(order.Act{Kind: order.RunNow}, nil)
		b.want("OrderStepEnded:Keep OrderResumed TaskClosed TaskRemoved TaskAdded")
		b.do(order.Act{Kind: order.RunNow}, order.ErrState)
		b.complete(b.claim(), failed)
		b.step("A", ok)
		b.is(projection.Due, "B")
	})
}

func TestRemove(t *testing.T) {
	onBoth(t, chains(ab()), func(t *testing.T, b *bench) {
		b.add(nil)
		b.events()
		b.do(order.Act{Kind: order.Remove}, nil)
		b.want("OrderRemoved TaskClosed TaskRemoved")
		b.do(order.Act{Kind: order.Remove}, order.ErrNoOrder)
		b.add(nil)
		l := b.claim()
		b.events()
		b.do(order.Act{Kind: order.Remove}, nil)
		b.do(order.Act{Kind: order.Remove}, order.ErrState)
		b.complete(l, ok)
		b.want("OrderStepEnded:Success OrderRemoved TaskEnded TaskClosed")
	})
}

func TestChainsAndNodesThatAreStopped(t *testing.T) {
	onBoth(t, chains(ab()), func(t *testing.T, b *bench) {
		stop := func(stop bool, want error) {
			t.Helper()
			if err := b.StopChain(t.Context(), "/c", stop); !errors.Is(err, want) {
				t.Errorf("StopChain(%v) = %v, want %v", stop, err, want)
			}
		}
		action := func(node, action string, want error) {
			t.Helper()
			if err := b.SetAction(t.Context(), "/c", node, action); !errors.Is(err, want) {
				t.Errorf("SetAction(%s, %s) = %v, want %v", node, action, err, want)
			}
		}
		b.add(nil)
		b.events()
		action("good", definition.ActionStop, order.ErrState)
		stop(false, order.ErrState)
		stop(true, nil)
		b.want("JobChainStateChanged OrderWaiting:A:chain TaskClosed TaskRemoved")
		stop(true, order.ErrState)
		b.is(projection.WaitingForResource, "A")
		if b.claim() != nil {
			t.Error("a step of a stopped chain starts")
		}
		stop(false, nil)
		b.want("JobChainStateChanged OrderNodeChanged:A TaskAdded")
		action("none", "stop", order.ErrNoNode)
		action("B", "no", order.ErrInvalid)
		action("B", "process", order.ErrState)
		action("B", "stop", nil)
		b.want("JobChainNodeActionChanged:B")
		b.step("A", ok)
		b.want("TaskStarted OrderStarted OrderStepStarted:A OrderStepEnded:Success OrderNodeChanged:B OrderWaiting:B:node TaskEnded TaskClosed")
		action("B", "next_state", nil)
		b.want("JobChainNodeActionChanged:B OrderNodeChanged:B OrderNodeChanged:good OrderFinished:good")
		b.add(nil)
		b.events()
		b.step("A", ok)
		b.want("TaskStarted OrderStarted OrderStepStarted:A OrderStepEnded:Success OrderNodeChanged:B OrderNodeChanged:good OrderFinished:good TaskEnded TaskClosed")
		b.now = b.now.Add(time.Minute)
		if err := b.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.want()
	})
}

func TestMaxOrders(t *testing.T) {
	chain := ab()
	chain.MaxOrders = 2
	onBoth(t, chains(chain), func(t *testing.T, b *bench) {
		for i := range 5 {
			b.now = b.now.Add(time.Millisecond)
			b.add(func(r *order.Request) { r.ID = fmt.Sprint(i) })
		}
		b.want("OrderAdded:A TaskAdded OrderAdded:A TaskAdded", "OrderAdded:A OrderWaiting:A:max_orders",
			"OrderAdded:A OrderWaiting:A:max_orders", "OrderAdded:A OrderWaiting:A:max_orders")
		if err := b.Act(t.Context(), "/c", "2", order.Act{Kind: order.Suspend}); err != nil {
			t.Fatal(err)
		}
		b.want("OrderSuspended OrderNodeChanged:A")
		b.step("A", failed) // order 0 ends: order 3 goes on
		b.want("TaskStarted OrderStarted OrderStepStarted:A OrderStepEnded:Error OrderNodeChanged:bad OrderFinished:bad OrderNodeChanged:A TaskEnded TaskClosed TaskAdded")
		if err := b.Act(t.Context(), "/c", "1", order.Act{Kind: order.Remove}); err != nil { // order 4 goes on
			t.Fatal(err)
		}
		b.want("OrderRemoved OrderNodeChanged:A TaskClosed TaskRemoved TaskAdded")
		for range 2 {
			b.step("A", failed)
		}
		if b.claim() != nil {
			t.Error("a suspended order goes on")
		}
		if err := b.Act(t.Context(), "/c", "2", order.Act{Kind: order.Resume}); err != nil {
			t.Fatal(err)
		}
		b.step("A", failed)
	})
}

func TestAPlannedOrderTakesItsPlaceWhenItStarts(t *testing.T) {
	chain := ab()
	chain.MaxOrders = 1
	onBoth(t, chains(chain), func(t *testing.T, b *bench) {
		b.add(func(r *order.Request) { r.RunAt = b.now.Add(time.Hour) })
		b.is(projection.Planned, "A")
		b.add(func(r *order.Request) { r.ID = "2" })
		b.step("A", failed)
		b.now = b.now.Add(time.Hour)
		if err := b.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.step("A", failed)
	})
}

func TestWhy(t *testing.T) {
	chain := ab()
	chain.MaxOrders = 1
	onBoth(t, chains(chain, definition.JobChain{Path: "/d", Nodes: ab().Nodes}), func(t *testing.T, b *bench) {
		why := func(chain, id, code string) {
			t.Helper()
			if r, err := b.Why(t.Context(), chain, id); err != nil || r.Code != code || r.Reason == "" || r.Since.IsZero() {
				t.Errorf("Why(%s,%s) = %+v, %v, want %s", chain, id, r, err, code)
			}
		}
		b.add(nil)
		why("/c", "1", "next")
		b.add(func(r *order.Request) { r.ID = "2" })
		why("/c", "2", order.ReasonMaxOrders)
		b.claim()
		why("/c", "1", "running")
		b.add(func(r *order.Request) { r.Chain, r.RunAt = "/d", b.now.Add(time.Hour) })
		why("/d", "1", order.ReasonPlanned)
		if err := b.Act(t.Context(), "/d", "1", order.Act{Kind: order.Suspend}); err != nil {
			t.Fatal(err)
		}
		why("/d", "1", order.ReasonSuspended)
	})
}

// What was asked for while a step ran, and happens at its end, is by who has asked for it.
func TestWhatAStepsEndDoesIsByWhoAskedForIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ask  order.Act
		does []string
	}{
		{order.Act{Kind: order.SetNode, Node: "good"}, []string{"OrderNodeChanged", "OrderFinished"}},
		{order.Act{Kind: order.Remove}, []string{"OrderRemoved"}},
	} {
		t.Run(string(c.ask.Kind), func(t *testing.T) {
			onBoth(t, chains(ab()), func(t *testing.T, b *bench) {
				b.add(nil)
				l := b.claim()
				b.events()
				if err := b.Act(journal.WithActor(t.Context(), "ada"), "/c", "1", c.ask); err != nil {
					t.Fatal(err)
				}
				if _, err := b.queue.Complete(journal.WithActor(t.Context(), "worker"), l.Token, ok); err != nil {
					t.Fatal(err)
				}
				all, err := b.journal.ReadAfter(t.Context(), journal.Request{After: b.seen, Limit: 100, Causes: true})
				if err != nil {
					t.Fatal(err)
				}
				did := 0
				for i := range all.Events {
					want := "worker"
					if slices.Contains(c.does, all.Events[i].Type) {
						want, did = "ada", did+1
					}
					if by := all.Events[i].By; by != want {
						t.Errorf("%s is by %q, want %q", all.Events[i].Type, by, want)
					}
				}
				if did != len(c.does) {
					t.Errorf("there are %d events of %v", did, c.does)
				}
			})
		})
	}
}
