package order_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// addMany adds n orders, 0 and so on.
func (b *bench) addMany(n int) {
	b.t.Helper()
	for i := range n {
		b.add(func(r *order.Request) { r.ID = fmt.Sprint(i) })
	}
}

// all acts on all orders that a filter selects, as ada.
func (b *bench) all(a order.Act, f order.Filter) order.Bulk {
	b.t.Helper()
	began, err := b.ActOnAll(journal.WithActor(b.t.Context(), "ada"), nil, a, f)
	if err != nil {
		b.t.Fatal(err)
	}
	return began
}

// told compares an act on many.
func (b *bench) told(id string, want order.Bulk) {
	b.t.Helper()
	want.ID = id
	if got, err := b.Bulk(b.t.Context(), id); err != nil || got != want {
		b.t.Errorf("the act is %+v, %v, want %+v", got, err, want)
	}
}

// types returns how many events of each type are new, without those of tasks.
func (b *bench) types() map[string]int {
	n := map[string]int{}
	for word := range strings.FieldsSeq(b.events()) {
		if name, _, _ := strings.Cut(word, ":"); strings.HasPrefix(name, "Order") {
			n[name]++
		}
	}
	return n
}

var everything = order.Filter{Paths: event.AllPaths()}

func TestAnActOnAllThatAFilterSelects(t *testing.T) {
	onBoth(t, chains(ab()), func(t *testing.T, b *bench) {
		const n = 333 // more than one item of the list holds
		b.addMany(n)
		l := b.claim()
		for _, id := range []string{"7", "9"} {
			if err := b.Act(t.Context(), "/c", id, order.Act{Kind: order.Suspend}); err != nil {
				t.Fatal(err)
			}
		}
		b.events()
		began := b.all(order.Act{Kind: order.Suspend}, everything)
		b.told(began.ID, order.Bulk{Kind: "suspend", By: "ada", Count: n, State: order.BulkRunning})
		b.add(func(r *order.Request) { r.ID = "later" })
		b.sweep()
		b.told(began.ID, order.Bulk{Kind: "suspend", By: "ada", Count: n, Done: n - 2, Failed: 2, State: order.BulkDone})
		if got := b.types(); got["OrderSuspended"] != n-2 {
			t.Errorf("events %v", got)
		}
		suspended := order.Filter{Paths: event.AllPaths(), Obstacle: "Suspended"}
		for f, want := range map[*order.Filter]int{
			&suspended: n, {Paths: event.AllPaths(), Obstacle: "Wait"}: 0, {Paths: event.AllPaths(), Node: "B"}: 0, {}: 0,
			{Paths: event.AllPaths(), Node: "A", State: projection.NotPlanned}:    n - 1,
			{Paths: event.AllPaths(), Node: "A", State: projection.InTaskProcess}: 1,
		} {
			if got, err := b.Count(t.Context(), *f); got != want || err != nil {
				t.Errorf("%+v selects %d, %v, want %d", f, got, err, want)
			}
		}
		began = b.all(order.Act{Kind: order.Resume, Variables: json.RawMessage(`{"v":1}`)}, suspended)
		b.sweep()
		b.told(began.ID, order.Bulk{Kind: "resume", By: "ada", Count: n, Done: n, State: order.BulkDone})
		for _, kind := range []order.ActKind{order.Suspend, order.Resume} {
			began = b.all(order.Act{Kind: kind}, everything)
			b.sweep()
			b.told(began.ID, order.Bulk{Kind: string(kind), By: "ada", Count: n + 1, Done: n + 1, State: order.BulkDone})
		}
		b.complete(l, ok)
		if _, err := b.ActOnAll(t.Context(), nil, order.Act{Kind: order.Resume}, suspended); !errors.Is(err, order.ErrNothing) {
			t.Errorf("ActOnAll = %v, want ErrNothing", err)
		}
		b.now = b.now.Add(8 * 24 * time.Hour)
		b.sweep()
		if _, err := b.Bulk(t.Context(), began.ID); !errors.Is(err, order.ErrNoBulk) {
			t.Errorf("Bulk = %v, want ErrNoBulk", err)
		}
	})
}

// Who asked for an act on many is on the journal, whoever does it.
func TestAnActOnManyIsItsActors(t *testing.T) {
	onBoth(t, chains(ab()), func(t *testing.T, b *bench) {
		b.addMany(3)
		b.events()
		b.all(order.Act{Kind: order.Suspend}, everything)
		b.sweep()
		page, err := b.journal.ReadAfter(t.Context(), journal.Request{After: b.seen, Limit: 100, Causes: true})
		if err != nil || len(page.Events) == 0 {
			t.Fatal(page, err)
		}
		for _, e := range page.Events {
			if e.By != "ada" {
				t.Errorf("%s is by %q", e.Type, e.By)
			}
		}
	})
}

func TestAnActOnManyIsStoppedAndResumed(t *testing.T) {
	onBoth(t, chains(ab()), func(t *testing.T, b *bench) {
		b.addMany(3)
		id := b.all(order.Act{Kind: order.Suspend}, everything).ID
		if err := b.ResumeBulk(t.Context(), id); !errors.Is(err, order.ErrState) {
			t.Errorf("ResumeBulk = %v, want ErrState", err)
		}
		if err := b.StopBulk(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		b.sweep()
		b.told(id, order.Bulk{Kind: "suspend", By: "ada", Count: 3, State: order.BulkStopped})
		if err := b.StopBulk(t.Context(), id); !errors.Is(err, order.ErrState) {
			t.Errorf("StopBulk = %v, want ErrState", err)
		}
		if err := b.ResumeBulk(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		b.sweep()
		b.told(id, order.Bulk{Kind: "suspend", By: "ada", Count: 3, Done: 3, State: order.BulkDone})
		for _, change := range []func(context.Context, string) error{b.StopBulk, b.ResumeBulk} {
			if err := change(t.Context(), id); !errors.Is(err, order.ErrState) {
				t.Errorf("of a done act: %v, want ErrState", err)
			}
			if err := change(t.Context(), "none"); !errors.Is(err, order.ErrNoBulk) {
				t.Errorf("of no act: %v, want ErrNoBulk", err)
			}
		}
	})
}

// broken is a store whose writes fail once so many of them have been sent.
type broken struct {
	store.Store
	left *atomic.Int64 // negative once a write has failed
}

func (f broken) Write(ctx context.Context, w store.Write) error {
	if f.left.Add(-1) < 0 {
		return store.ErrClosed
	}
	return f.Store.Write(ctx, w)
}

// An act that another process carries on after any write skips no order twice.
func TestAnActOnManyIsDoneOnceWhateverFails(t *testing.T) {
	onBoth(t, chains(ab()), func(t *testing.T, b *bench) {
		const n = 70 // two batches
		b.addMany(n)
		b.events()
		id := b.all(order.Act{Kind: order.Skip}, everything).ID
		for after := int64(0); ; after++ {
			var left atomic.Int64
			left.Store(after)
			other := open(t, broken{b.store, &left}, b.declared.set)
			other.now = b.now
			err := other.Sweep(t.Context())
			left.Store(math.MaxInt64)
			if b.now = b.now.Add(time.Minute); err == nil { // what it has kept to itself is over
				break
			}
		}
		b.sweep()
		b.told(id, order.Bulk{Kind: "skip", By: "ada", Count: n, Done: n, State: order.BulkDone})
		if got := b.types(); got["OrderNodeChanged"] != n {
			t.Errorf("events %v, want %d changes of nodes", got, n)
		}
	})
}

// An order that has taken the place of one that was selected is left alone.
func TestAnActOnManyLeavesLaterOrders(t *testing.T) {
	onBoth(t, chains(ab()), func(t *testing.T, b *bench) {
		b.addMany(2)
		id := b.all(order.Act{Kind: order.Remove}, everything).ID
		b.now = b.now.Add(time.Second)
		b.add(func(r *order.Request) { r.ID, r.Replace = "1", true })
		b.sweep()
		b.told(id, order.Bulk{Kind: "remove", By: "ada", Count: 2, Done: 1, Failed: 1, State: order.BulkDone})
	})
}

func TestActsOnJobs(t *testing.T) {
	onBoth(t, chains(ab()), func(t *testing.T, b *bench) {
		enqueue := func(topic string) {
			t.Helper()
			if _, err := b.queue.Enqueue(t.Context(), nil, queue.New{Dialect: task.Job, Job: queue.TopicPath(topic), Attempts: 1}); err != nil {
				t.Fatal(err)
			}
		}
		for range 3 {
			enqueue("a/x")
			enqueue("a/y")
		}
		queued := order.JobFilter{Paths: event.AllPaths(), States: []task.State{task.Waiting, task.Ready, task.Running, task.Missing}}
		act := func(a order.JobAct, f order.JobFilter, count int) {
			t.Helper()
			if n, err := b.CountJobs(t.Context(), f); n != count || err != nil {
				t.Fatalf("%s selects %d, %v, want %d", a, n, err, count)
			}
			began, err := b.ActOnJobs(t.Context(), nil, a, f)
			if err != nil {
				t.Fatal(err)
			}
			b.sweep()
			b.told(began.ID, order.Bulk{Kind: string(a), Count: count, Done: count, State: order.BulkDone})
		}
		x := queued
		x.Topic = queue.TopicPath("a/x")
		act(order.StopJobs, x, 3)
		act(order.RemoveJobs, queued, 3)
		if _, err := b.ActOnJobs(t.Context(), nil, order.StopJobs, queued); !errors.Is(err, order.ErrNothing) {
			t.Errorf("ActOnJobs = %v, want ErrNothing", err)
		}
		stopped := order.JobFilter{Paths: event.AllPaths(), History: true, States: []task.State{task.Stopped}}
		act(order.RetryJobs, stopped, 3)
		act(order.RemoveJobs, stopped, 3)
		act(order.StopJobs, queued, 3)
	})
}

// An act with a rate does no more than that in a second, whichever process does it, and however often they look; what it is done with is a part.
func TestAnActOnSomeAtARate(t *testing.T) {
	onBoth(t, chains(ab()), func(t *testing.T, b *bench) {
		b.addMany(9)
		some := everything
		some.Portion = order.Portion{Limit: 5, PerSecond: 2}
		if n, err := b.Count(t.Context(), some); n != 5 || err != nil {
			t.Errorf("counted %d, %v", n, err)
		}
		id := b.all(order.Act{Kind: order.Skip}, some).ID
		want := order.Bulk{Kind: "skip", By: "ada", Count: 5, State: order.BulkRunning, PerSecond: 2}
		b.told(id, want)
		at := b
		for second, done := range []int{2, 4, 5} {
			if second == 1 {
				at = open(t, b.store, b.declared.set) // the first has died: nothing is its own
				at.now = b.now
			}
			at.sweep()
			if want.Done = done; done == 5 {
				want.State = order.BulkDone
			}
			at.told(id, want)
			at.now = at.now.Add(time.Second - time.Microsecond)
			at.sweep()
			at.told(id, want)
			at.now = at.now.Add(time.Microsecond)
		}
		if got := b.types(); got["OrderNodeChanged"] != 5 {
			t.Errorf("events %v, want 5 changes of nodes", got)
		}
	})
}

// A rate above what a batch holds is kept by batches that follow sooner.
func TestAnActAtAHighRate(t *testing.T) {
	onBoth(t, chains(ab()), func(t *testing.T, b *bench) {
		b.addMany(120)
		all := everything
		all.PerSecond = 100
		id := b.all(order.Act{Kind: order.Suspend}, all).ID
		for _, done := range []int{50, 100, 120} {
			b.sweep()
			if got, err := b.Bulk(t.Context(), id); got.Done != done || err != nil {
				t.Errorf("done %d, %v, want %d", got.Done, err, done)
			}
			b.now = b.now.Add(500 * time.Millisecond)
		}
	})
}

// Stopped, an act with a rate does nothing more; resumed, it goes on at its rate.
func TestAnActAtARateIsStoppedAndResumed(t *testing.T) {
	onBoth(t, chains(ab()), func(t *testing.T, b *bench) {
		b.addMany(3)
		slow := everything
		slow.PerSecond = 1
		id := b.all(order.Act{Kind: order.Skip}, slow).ID
		b.sweep()
		if err := b.StopBulk(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		b.now = b.now.Add(time.Hour)
		b.sweep()
		want := order.Bulk{Kind: "skip", By: "ada", Count: 3, Done: 1, State: order.BulkStopped, PerSecond: 1}
		b.told(id, want)
		if err := b.ResumeBulk(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		b.sweep()
		want.Done, want.State = 2, order.BulkRunning
		b.told(id, want)
		b.now = b.now.Add(time.Second)
		b.sweep()
		want.Done, want.State = 3, order.BulkDone
		b.told(id, want)
	})
}
