package queue_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/store/meter"
	"github.com/millrace/millrace/shared/task"
)

// walk is a chain of two nodes, A and B, whose orders are items that hold the id of the step's task.
type walk struct {
	b   *bench
	bad error // of the next end
}

var orderItem = store.Key{Table: store.Work, Partition: "o#/chain#1", Sort: "-"}

func (w *walk) step(node string) queue.New {
	n := queue.New{
		Dialect: task.OfOrder, Job: "/plain", Payload: json.RawMessage(`{}`),
		Order: &task.Order{Chain: "/chain", ID: "1", Node: node, First: node == "A"},
	}
	n.Given = w.b.NewID(&n)
	return n
}

func (w *walk) read(ctx context.Context) (value string, cond store.Condition) {
	items, err := w.b.store.Get(ctx, orderItem)
	if err != nil {
		w.b.t.Fatal(err)
	}
	if items[0] == nil {
		return "", store.Absent
	}
	return string(items[0].Value), store.VersionIs(items[0].Version)
}

// Ended goes from A to B, and removes the order at B's end.
func (w *walk) Ended(ctx context.Context, t *task.Task, r queue.Result, _ *store.Conflict) (queue.Follow, error) {
	if w.bad != nil {
		return queue.Follow{}, w.bad
	}
	value, cond := w.read(ctx)
	if value != string(t.ID) {
		return queue.Follow{}, nil
	}
	says := typed.OrderStepEnded{Transition: typed.NodeTransition{Type: string(r.Outcome)}}
	f := queue.Follow{Before: []event.Event{typed.OrderEvent("OrderStepEnded", t.Order.Path(), says)}}
	if t.Order.Node == "B" {
		f.Before = append(f.Before, typed.OrderEvent("OrderFinished", t.Order.Path(), typed.OrderFinished{NodeID: "B"}))
		f.Ops = []store.Op{store.Delete(orderItem, cond)}
		return f, nil
	}
	next := w.step("B")
	f.Before = append(f.Before, typed.OrderEvent("OrderNodeChanged", t.Order.Path(), typed.OrderNodeChanged{NodeID: "B", FromNodeID: "A"}))
	f.Ops = []store.Op{store.Put(store.Item{Key: orderItem, Value: []byte(next.Given)}, cond)}
	f.Add = []queue.New{next}
	return f, nil
}

// begin adds the order.
func (w *walk) begin() task.ID {
	w.b.t.Helper()
	first := w.step("A")
	err := w.b.Change(w.b.t.Context(), []string{"/chain,1"}, func(context.Context, *store.Conflict) (queue.Follow, error) {
		return queue.Follow{
			Before: []event.Event{typed.OrderEvent("OrderAdded", "/chain,1", typed.OrderAdded{NodeID: "A"})},
			Ops:    []store.Op{store.Put(store.Item{Key: orderItem, Value: []byte(first.Given)}, store.Absent)},
			Add:    []queue.New{first},
		}, nil
	})
	if err != nil {
		w.b.t.Fatal(err)
	}
	return first.Given
}

// onBoth runs a test with a store of this process alone, and with one that it shares.
func onBoth(t *testing.T, test func(t *testing.T, w *walk)) {
	for name, s := range map[string]store.Store{"alone": memory.New(memory.Options{}), "shared": shared{memory.New(memory.Options{})}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, walking(t, s))
		})
	}
}

func walking(t *testing.T, s store.Store) *walk {
	b := &bench{t: t, store: s, clock: clockAt(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))}
	w := &walk{b: b}
	b.journal = journal.Open(s, journal.Options{Now: b.clock.now, Folds: projection.Folds()})
	b.Queue = queue.Open(queue.Options{Store: s, Journal: b.journal, Definitions: fixed{ways()}, Now: b.clock.now, Steps: w})
	return w
}

// types returns the types of all events.
func (w *walk) types() string {
	w.b.t.Helper()
	all, err := w.b.journal.ReadAfter(w.b.t.Context(), journal.Request{Limit: 1000})
	if err != nil {
		w.b.t.Fatal(err)
	}
	var names []string
	for i := range all.Events {
		names = append(names, all.Events[i].Type)
	}
	return strings.Join(names, " ")
}

func TestAStepsEndIsOneWriteWithTheNextStep(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *walk) {
		w.begin()
		for range 2 {
			l := w.b.claim(1)
			if len(l) != 1 {
				t.Fatalf("%d leases, want the step", len(l))
			}
			w.b.complete(l[0], queue.Result{Outcome: queue.OK})
		}
		const want = "OrderAdded TaskAdded " +
			"TaskStarted OrderStarted OrderStepStarted OrderStepEnded OrderNodeChanged TaskEnded TaskClosed TaskAdded " +
			"TaskStarted OrderStepStarted OrderStepEnded OrderFinished TaskEnded TaskClosed"
		if got := w.types(); got != want {
			t.Errorf("events:\n%s\nwant:\n%s", got, want)
		}
		if value, _ := w.read(t.Context()); value != "" {
			t.Errorf("the order is still there: %s", value)
		}
	})
}

// Whatever ends a step's task, the order learns of it in the same write.
func TestAStepThatNobodyRunsEndsToo(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(b *bench, id task.ID) error{
		"stopped": func(b *bench, id task.ID) error { _, err := b.Stop(b.t.Context(), id); return err },
		"removed": func(b *bench, id task.ID) error { return b.Remove(b.t.Context(), id) },
		"purged":  func(b *bench, _ task.ID) error { _, err := b.Purge(b.t.Context(), "main"); return err },
		"removed while it runs": func(b *bench, id task.ID) error {
			b.claim(1)
			return b.Remove(b.t.Context(), id)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, w *walk) {
				if err := end(w.b, w.begin()); err != nil {
					t.Fatal(err)
				}
				if leases := w.b.claim(1); len(leases) != 1 || leases[0].Task.Order.Node != "B" {
					t.Errorf("%d leases, want the step at B; events: %s", len(leases), w.types())
				}
			})
		})
	}
}

func TestAStepIsAllAttemptsOfItsTask(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *walk) {
		w.b.clock.advance(time.Second)
		n := w.step("A")
		n.Attempts = 2
		w.b.enqueue(n)
		w.b.complete(w.b.claim(1)[0], queue.Result{Outcome: queue.Failed, Code: 3})
		w.b.claim(1)
		const want = "TaskAdded TaskStarted OrderStarted OrderStepStarted TaskEnded TaskStarted"
		if got := w.types(); got != want {
			t.Errorf("events:\n%s\nwant:\n%s", got, want)
		}
	})
}

// After an error of the steps' owner nothing is changed, and the lease holds.
func TestAnEndThatCannotFollowChangesNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *walk) {
		w.begin()
		l := w.b.claim(1)[0]
		w.bad = fmt.Errorf("%w: variables", queue.ErrInvalid)
		before := w.types()
		if _, err := w.b.Complete(t.Context(), l.Token, queue.Result{Outcome: queue.OK}); !errors.Is(err, queue.ErrInvalid) {
			t.Fatalf("Complete = %v, want an ErrInvalid", err)
		}
		if got := w.types(); got != before {
			t.Errorf("events: %s, want %s", got, before)
		}
		w.bad = nil
		w.b.complete(l, queue.Result{Outcome: queue.OK})
	})
}

func TestAChangeWithdrawsAStep(t *testing.T) {
	t.Parallel()
	for name, later := range map[string]time.Duration{"ready": 0, "due later": time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, w *walk) {
				n := w.step("A")
				if later > 0 {
					n.NotBefore = w.b.clock.now().Add(later)
				}
				w.b.enqueue(n)
				tries := 0
				err := w.b.Change(t.Context(), []string{"/chain,1"}, func(ctx context.Context, _ *store.Conflict) (queue.Follow, error) {
					tries++
					s, err := w.b.Stored(ctx, n.Given)
					return queue.Follow{
						Before:   []event.Event{typed.OrderEvent("OrderSuspended", "/chain,1", typed.OrderSuspended{})},
						Withdraw: []queue.Stored{s},
					}, err
				})
				if err != nil || tries != 1 {
					t.Fatalf("Change = %v after %d tries", err, tries)
				}
				if got, want := w.types(), "TaskAdded OrderSuspended TaskClosed TaskRemoved"; got != want {
					t.Errorf("events: %s, want %s", got, want)
				}
				w.b.clock.advance(2 * later)
				if _, err := w.b.Sweep(t.Context()); err != nil {
					t.Fatal(err)
				}
				if leases := w.b.claim(1); len(leases) > 0 {
					t.Error("the withdrawn step was started")
				}
			})
		})
	}
}

// A claim that comes between the reading of a change and its write makes the change read again.
func TestAChangeSeesThatItsStepWasStarted(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *walk) {
		n := w.step("A")
		w.b.enqueue(n)
		var seen []task.State
		err := w.b.Change(t.Context(), []string{"/chain,1"}, func(ctx context.Context, _ *store.Conflict) (queue.Follow, error) {
			s, err := w.b.Stored(ctx, n.Given)
			if seen = append(seen, s.Task.State); len(seen) > 1 || err != nil {
				return queue.Follow{}, err
			}
			other := queue.Open(queue.Options{Store: w.b.store, Journal: w.b.journal, Definitions: fixed{ways()}, Now: w.b.clock.now})
			if leases, err := other.Claim(ctx, queue.Claimer{Instance: "other"}, 1); err != nil || len(leases) != 1 {
				t.Errorf("Claim = %v, %v", leases, err)
			}
			return queue.Follow{Withdraw: []queue.Stored{s}}, nil
		})
		if err != nil || len(seen) != 2 || seen[1] != task.Running {
			t.Errorf("Change = %v, having seen %v", err, seen)
		}
	})
}

func TestAStepCostsNoMoreThanItsBudget(t *testing.T) {
	t.Parallel()
	m := meter.New(shared{memory.New(memory.Options{})})
	w := walking(t, m)
	warm := queue.New{Dialect: task.Job, Job: "/plain"}
	w.b.enqueue(warm)
	w.b.complete(w.b.claim(1)[0], queue.Result{Outcome: queue.OK})
	w.begin()
	m.Reset()
	w.b.complete(w.b.claim(1)[0], queue.Result{Outcome: queue.OK})
	if used := m.Usage().Total().WCU; used > 24 {
		t.Errorf("a step costs %d WCU, want at most 24", used)
	} else {
		t.Logf("a step costs %d WCU", used)
	}
}
