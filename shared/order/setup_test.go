package order_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
)

// declared is a set of definitions that tests change.
type declared struct{ set *definition.Set }

func (d *declared) Current(context.Context) (*definition.Set, error) { return d.set, nil }
func (d *declared) Refresh(context.Context) (*definition.Set, error) { return d.set, nil }

// shared is a store that other processes might use too.
type shared struct{ store.Store }

func (shared) Exclusive() bool { return false }

// bench is an engine of orders with its queue, journal and clock.
type bench struct {
	*order.Engine
	t        testing.TB
	queue    *queue.Queue
	journal  *journal.Journal
	store    store.Store
	declared *declared
	now      time.Time
	seen     event.ID
	errors   bytes.Buffer     // what the engine has logged as errors
	read     func(how string) // called around each read of the journal by the engine; nil: nothing
}

// chains returns a set with these chains and the jobs that they need.
func chains(all ...definition.JobChain) *definition.Set {
	set := &definition.Set{JobChains: all, Jobs: []definition.Job{
		{Path: "/j", Target: definition.Target{Go: "f"}},
		{Path: "/again", Target: definition.Target{Go: "f"}, Attempts: 2},
		{Path: "/back", Target: definition.Target{Go: "f"}, Setbacks: []definition.Setback{
			{Count: 1, Delay: time.Minute}, {Count: 2, Delay: time.Hour, IsMaximum: true},
		}},
	}}
	return set
}

// ab is the chain /c of A and B with an end for each outcome.
func ab() definition.JobChain {
	return definition.JobChain{Path: "/c", Nodes: []definition.Node{
		{ID: "A", Job: "/j", Next: "B", Error: "bad"}, {ID: "B", Job: "/j", Next: "good", Error: "bad"}, {ID: "good"}, {ID: "bad"},
	}}
}

// onBoth runs a test with a store of this process alone, and with one that it shares.
func onBoth(t *testing.T, set *definition.Set, test func(t *testing.T, b *bench)) {
	t.Helper()
	t.Parallel()
	for name, s := range map[string]store.Store{"alone": memory.New(memory.Options{}), "shared": shared{memory.New(memory.Options{})}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t, s, set))
		})
	}
}

func open(t testing.TB, s store.Store, set *definition.Set) *bench {
	b := &bench{t: t, store: s, declared: &declared{set}, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	now := func() time.Time { return b.now }
	b.journal = journal.Open(s, journal.Options{Now: now, Folds: projection.Folds()})
	log := slog.New(slog.NewTextHandler(&b.errors, &slog.HandlerOptions{Level: slog.LevelError}))
	b.Engine = order.Open(order.Options{Store: s, Journal: b, Definitions: b.declared, Now: now, Log: log})
	b.queue = queue.Open(queue.Options{Store: s, Journal: b.journal, Definitions: b.declared, Now: now, Steps: b.Engine})
	b.Use(b.queue)
	t.Cleanup(func() { _ = b.queue.Close(); _ = b.journal.Close() })
	return b
}

// add adds an order of the chain /c with the id 1, changed by change.
func (b *bench) add(change func(*order.Request)) projection.OrderOverview {
	b.t.Helper()
	r := order.Request{Chain: "/c", ID: "1"}
	if change != nil {
		change(&r)
	}
	added, err := b.Add(b.t.Context(), nil, r)
	if err != nil {
		b.t.Fatal(err)
	}
	return added.Order
}

// claim starts the next step; the lease is nil if there is none.
func (b *bench) claim() *queue.Lease {
	b.t.Helper()
	leases, err := b.queue.Claim(b.t.Context(), queue.Claimer{Instance: "i"}, 1)
	if err != nil {
		b.t.Fatal(err)
	}
	if len(leases) == 0 {
		return nil
	}
	return &leases[0]
}

// step runs the step that is at a node.
func (b *bench) step(node string, r queue.Result) {
	b.t.Helper()
	l := b.claim()
	if l == nil {
		b.t.Fatalf("no step can be started, want that at %s; events: %s", node, b.events())
	}
	if l.Task.Order.Node != node {
		b.t.Fatalf("the step is at %s, want %s", l.Task.Order.Node, node)
	}
	b.complete(l, r)
}

func (b *bench) complete(l *queue.Lease, r queue.Result) {
	b.t.Helper()
	if _, err := b.queue.Complete(b.t.Context(), l.Token, r); err != nil {
		b.t.Fatal(err)
	}
}

var (
	ok     = queue.Result{Outcome: queue.OK}
	failed = queue.Result{Outcome: queue.Failed, Code: 1}
)

func vars(text string) queue.Result {
	return queue.Result{Outcome: queue.OK, Variables: json.RawMessage(text)}
}

// events returns the new events, one word each: the type, and the node where it has one.
func (b *bench) events() string {
	b.t.Helper()
	all, err := b.journal.ReadAfter(b.t.Context(), journal.Request{After: b.seen, Limit: 10_000})
	if err != nil {
		b.t.Fatal(err)
	}
	var words []string
	b.agree()
	for i := range all.Events {
		e := &all.Events[i]
		var f struct {
			NodeID, From, To string
			For              string
			Transition       struct{ TYPE string } `json:"nodeTransition"`
		}
		_ = json.Unmarshal(fmt.Appendf(nil, "{%s}", e.Fields), &f)
		word := e.Type
		for _, detail := range []string{f.NodeID, f.Transition.TYPE, f.For} {
			if detail != "" {
				word += ":" + detail
			}
		}
		words = append(words, word)
		b.seen = e.ID
	}
	return strings.Join(words, " ")
}

// want compares the new events.
func (b *bench) want(events ...string) {
	b.t.Helper()
	want := strings.Join(events, " ")
	if got := b.events(); got != want {
		b.t.Errorf("events:\n%s\nwant:\n%s", got, want)
	}
}

// is compares the state and the node of an order.
func (b *bench) is(state, node string) projection.OrderOverview {
	b.t.Helper()
	o, err := b.Get(b.t.Context(), "/c", "1")
	if err != nil {
		b.t.Fatal(err)
	}
	if o.State.Type != state || o.NodeID != node {
		b.t.Errorf("the order is %s at %s, want %s at %s", o.State.Type, o.NodeID, state, node)
	}
	b.agree()
	return o
}

// agree compares all orders with what their events say.
func (b *bench) agree() {
	b.t.Helper()
	_, err := b.journal.Snapshot(b.t.Context(), "OrderOverview", func(key string, value []byte) {
		if len(value) == 0 {
			return
		}
		var told projection.OrderOverview
		if err := json.Unmarshal(value, &told); err != nil {
			b.t.Fatal(err)
		}
		chain, id := order.Split(key)
		is, err := b.Get(b.t.Context(), chain, id)
		if err != nil {
			b.t.Errorf("%s: %v", key, err)
			return
		}
		told.AsOf(b.now)
		if diff := cmp.Diff(told, is); diff != "" {
			b.t.Errorf("%s (-by its events +by its item):\n%s", key, diff)
		}
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// ReadAfter and the two after it are the journal that the engine reads: a test may do something after each read.
func (b *bench) ReadAfter(ctx context.Context, r journal.Request) (journal.Answer, error) {
	b.hasRead("before")
	a, err := b.journal.ReadAfter(ctx, r)
	b.hasRead("ReadAfter")
	return a, err
}

func (b *bench) ReadNewest(ctx context.Context, r journal.Request) (journal.Answer, error) {
	a, err := b.journal.ReadNewest(ctx, r)
	b.hasRead("ReadNewest")
	return a, err
}

func (b *bench) Floor(ctx context.Context) (event.ID, error) { return b.journal.Floor(ctx) }

func (b *bench) EventsAt(ctx context.Context, position int64) ([]event.Event, error) {
	return b.journal.EventsAt(ctx, position)
}

func (b *bench) SnapshotOf(
	ctx context.Context, fold string, p journal.Part, each func(key string, value []byte),
) (event.ID, error) {
	return b.journal.SnapshotOf(ctx, fold, p, each)
}

func (b *bench) hasRead(how string) {
	if b.read != nil {
		b.read(how)
	}
}

// isA returns what selects the events of a type.
func isA(kind string) func(*event.Event) bool {
	return func(e *event.Event) bool { return e.Type == kind }
}
