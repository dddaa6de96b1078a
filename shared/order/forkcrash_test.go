package order_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/millrace/millrace/shared/store/pebble"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
)

// mortal is the store as a process sees it that is killed at one of its writes: before it is applied, or afterwards and before the
// process hears of it. All later calls fail.
type mortal struct {
	store.Store
	mu      sync.Mutex
	writes  int // that are left
	applies bool
	dead    bool
}

func (m *mortal) Write(ctx context.Context, w store.Write) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.writes--
	switch {
	case m.dead:
		return store.ErrClosed
	case m.writes > 0:
		return m.Store.Write(ctx, w)
	}
	m.dead = true
	if m.applies {
		_ = m.Store.Write(ctx, w)
	}
	return store.ErrClosed
}

func (m *mortal) alive() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return store.ErrClosed
	}
	return nil
}

func (m *mortal) Get(ctx context.Context, keys ...store.Key) ([]*store.Item, error) {
	if err := m.alive(); err != nil {
		return nil, err
	}
	return m.Store.Get(ctx, keys...)
}

func (m *mortal) Query(ctx context.Context, r store.Range) (store.Page, error) {
	if err := m.alive(); err != nil {
		return store.Page{}, err
	}
	return m.Store.Query(ctx, r)
}

func (m *mortal) Reserve(ctx context.Context, key store.Key, ids int, now int64) (store.Ticket, error) {
	if err := m.alive(); err != nil {
		return store.Ticket{}, err
	}
	return m.Store.Reserve(ctx, key, ids, now)
}

// goOn adds the order 1 unless it is there, and runs steps until there is nothing to do, or an error. The step of the child 1!1 fails.
func (b *bench) goOn(ctx context.Context, r order.Request) error {
	once := &journal.Idempotency{Scope: "s", Key: "k"}
	if _, err := b.Add(ctx, once, r); err != nil {
		return err
	}
	for {
		if err := b.Sweep(ctx); err != nil {
			return err
		}
		leases, err := b.queue.Claim(ctx, queue.Claimer{Instance: "i"}, 3)
		if err != nil || len(leases) == 0 {
			return err
		}
		for _, l := range leases {
			result := ok
			if l.Task.Order.ID == "1!1" {
				result = failed
			}
			if _, err := b.queue.Complete(ctx, l.Token, result); err != nil {
				return err
			}
		}
	}
}

// lived is what the journal says of the order 1 and its children.
type lived struct {
	added, ended map[string]int // by id
	joined       []typed.OrderJoined
	steps        int // of the order 1
}

func (b *bench) lived() lived {
	b.t.Helper()
	l := lived{added: map[string]int{}, ended: map[string]int{}}
	for after := event.ID(0); ; {
		read, err := b.journal.ReadAfter(b.t.Context(), journal.Request{After: after, Limit: 10_000})
		if err != nil {
			b.t.Fatal(err)
		}
		for i := range read.Events {
			e := &read.Events[i]
			_, id := order.Split(e.Key.Path)
			switch e.Type {
			case event.OrderAdded:
				l.added[id]++
			case event.OrderFinished, event.OrderRemoved:
				l.ended[id]++
			case event.OrderJoined:
				l.joined = append(l.joined, typed.ReadOrder[typed.OrderJoined](e))
			case event.OrderStepEnded:
				if id == "1" {
					l.steps++
				}
			}
			after = e.ID
		}
		if len(read.Events) == 0 {
			return l
		}
	}
}

// check demands that each of the orders was there once, that the order 1 was joined once, and that it went on in so many steps.
func (l *lived) check(t *testing.T, orders int, joined typed.OrderJoined, steps int) {
	t.Helper()
	if orders > 0 && len(l.added) != orders || len(l.ended) != len(l.added) {
		t.Errorf("%d orders added, %d ended, want %d", len(l.added), len(l.ended), orders)
	}
	for id, n := range l.added {
		if n != 1 || l.ended[id] != 1 {
			t.Errorf("%s: added %d times, ended %d times", id, n, l.ended[id])
		}
	}
	if steps == 0 && len(l.joined) == 1 {
		l.joined[0].Succeeded = 0 // so many as ended before the one that fails
	}
	if len(l.joined) != 1 || l.joined[0] != joined {
		t.Errorf("joined %+v, want %+v once", l.joined, joined)
	}
	if l.steps != steps {
		t.Errorf("%d steps after the join, want %d", l.steps, steps)
	}
}

// some returns an order of the chain /c with a list of so many elements.
func some(children int) order.Request {
	var elements []string
	for i := range children {
		elements = append(elements, fmt.Sprint(i))
	}
	return order.Request{Chain: "/c", ID: "1", Variables: json.RawMessage(`{"list":[` + strings.Join(elements, ",") + `]}`)}
}

// forks are the forks that are tested under failures: of children of which one fails.
var forks = map[string]struct {
	fork   func(n *definition.Node, children int)
	orders func(children int) int // that there are in all; 0: it depends
	joined func(children int) typed.OrderJoined
	steps  int
}{
	"waits": {
		func(n *definition.Node, children int) { n.Join = &definition.Join{AtLeast: children - 1} },
		func(children int) int { return children + 1 },
		func(children int) typed.OrderJoined { return typed.OrderJoined{Succeeded: children - 1, Failed: 1} }, 1,
	},
	"cancels": {
		func(n *definition.Node, _ int) { n.Fork.OnFailed = definition.FailedCancels },
		func(int) int { return 0 },
		func(int) typed.OrderJoined { return typed.OrderJoined{Failed: 1} }, 0,
	},
}

// TestAForkSurvivesAKillAtAnyWrite: whoever comes after the process goes on where it was.
func TestAForkSurvivesAKillAtAnyWrite(t *testing.T) {
	const children = 24 // in several writes
	for name, f := range forks {
		set := chains(each(func(n *definition.Node) {
			n.Fork.Job = "/again"
			f.fork(n, children)
		}))
		for _, kind := range []string{"alone", "shared"} {
			for _, applies := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s/%s/applies=%v", name, kind, applies), func(t *testing.T) {
					t.Parallel()
					for n, killed := 1, true; killed && !t.Failed(); n++ {
						var base store.Store = memory.New(memory.Options{})
						if kind == "shared" {
							base = shared{base}
						}
						killed = lives(t, &mortal{Store: base, writes: n, applies: applies}, set, children)
						next := open(t, base, set)
						next.now = next.now.Add(time.Hour) // leases are over
						if _, err := next.queue.Sweep(t.Context()); err != nil {
							t.Fatal(err)
						}
						if err := next.goOn(t.Context(), some(children)); err != nil {
							t.Fatal(err)
						}
						l := next.lived()
						l.check(t, f.orders(children), f.joined(children), f.steps)
						next.nothingLeft()
						if t.Failed() {
							t.Errorf("killed at the write %d", n)
						}
					}
				})
			}
		}
	}
}

// lives lets a process do what it can, and reports whether it was killed.
func lives(t *testing.T, m *mortal, set *definition.Set, children int) (killed bool) {
	t.Helper()
	err := open(t, m, set).goOn(t.Context(), some(children))
	if m.alive() != nil {
		return true
	}
	if err != nil {
		t.Fatal(err)
	}
	return false
}

// TestAStopSurvivesAKillAtAnyWrite: of the step of a child that another one's failure ends.
func TestAStopSurvivesAKillAtAnyWrite(t *testing.T) {
	t.Parallel()
	set := chains(each(func(n *definition.Node) { n.Fork.OnFailed = definition.FailedCancels }))
	for n, killed := 1, true; killed && !t.Failed(); n++ {
		base := shared{memory.New(memory.Options{})}
		before := open(t, base, set)
		before.add(list(`1,2`))
		before.sweep()
		first, second := before.claim(), before.claim()
		m := &mortal{Store: base, writes: n, applies: true}
		dies := open(t, m, set)
		_, _ = dies.queue.Complete(t.Context(), first.Token, failed)
		_ = dies.Sweep(t.Context())
		killed = m.alive() != nil
		next := open(t, base, set)
		next.sweep()
		if alive, err := next.queue.Heartbeat(t.Context(), second.Token, queue.Beat{}); err != nil || !alive.Stop {
			t.Errorf("killed at the write %d: Heartbeat = %+v, %v, want a stop", n, alive, err)
		}
	}
}

// TestAForkWithRivals: several processes do the same at the same time.
func TestAForkWithRivals(t *testing.T) {
	t.Parallel()
	const children = 60
	for name, f := range forks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := chains(each(func(n *definition.Node) { f.fork(n, children) }))
			base := shared{memory.New(memory.Options{})}
			var rivals [3]*bench
			for i := range rivals {
				rivals[i] = open(t, base, set)
			}
			var all sync.WaitGroup
			for _, b := range rivals {
				all.Go(func() {
					if err := b.goOn(t.Context(), some(children)); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			if err := rivals[0].goOn(t.Context(), some(children)); err != nil {
				t.Fatal(err)
			}
			l := rivals[0].lived()
			l.check(t, f.orders(children), f.joined(children), f.steps)
			rivals[0].nothingLeft()
		})
	}
}

// TestAForkOfManyChildren is that of 10,000, on the store of a single process.
func TestAForkOfManyChildren(t *testing.T) {
	t.Parallel()
	const children = 10_000
	s, err := pebble.Open("data/store", pebble.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	f := forks["waits"]
	b := open(t, s, chains(each(func(n *definition.Node) { f.fork(n, children) })))
	ctx, cancel := context.WithCancel(t.Context())
	var sweeper sync.WaitGroup
	sweeper.Go(func() { b.Run(ctx) })
	if _, err := b.Add(ctx, nil, some(children)); err != nil {
		t.Fatal(err)
	}
	for b.isThere("1") {
		leases, err := b.queue.Claim(ctx, queue.Claimer{Instance: "i"}, queue.MaxClaim)
		if err != nil {
			t.Fatal(err)
		}
		var steps sync.WaitGroup
		for _, l := range leases {
			steps.Go(func() {
				result := ok
				if l.Task.Order.ID == "1!1" {
					result = failed
				}
				if _, err := b.queue.Complete(ctx, l.Token, result); err != nil {
					t.Error(err)
				}
			})
		}
		steps.Wait()
	}
	cancel()
	sweeper.Wait()
	l := b.lived()
	l.check(t, f.orders(children), f.joined(children), f.steps)
	b.nothingLeft()
}

// isThere reports whether there is an order of the chain /c with that id.
func (b *bench) isThere(id string) bool {
	b.t.Helper()
	_, err := b.Get(b.t.Context(), "/c", id)
	if err != nil && !errors.Is(err, order.ErrNoOrder) {
		b.t.Fatal(err)
	}
	return err == nil
}
