package queue_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/notifier"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/queue/rule"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/store/meter"
	"github.com/millrace/millrace/shared/store/pebble"
	"github.com/millrace/millrace/shared/task"
)

// backlog is many tasks of one job that cannot be started, all before one of another job that can.
type backlog struct {
	*bench
	meter    *meter.Meter
	notifier *notified
	size     int
}

// notified is a notifier that counts notifications.
type notified struct{ notices atomic.Int64 }

// Notify counts.
func (r *notified) Notify(_ context.Context, notices ...notifier.Notice) error {
	r.notices.Add(int64(len(notices)))
	return nil
}

// Ping returns nil.
func (r *notified) Ping(context.Context) error { return nil }

// Close does nothing.
func (r *notified) Close() error { return nil }

// stores are the kinds of store that an engine works on.
var stores = map[string]func(t *testing.T) store.Store{
	"memory": func(*testing.T) store.Store { return memory.New(memory.Options{}) },
	"shared": func(*testing.T) store.Store { return shared{memory.New(memory.Options{})} },
	"pebble": func(t *testing.T) store.Store {
		s, err := pebble.Open(t.TempDir(), pebble.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	},
}

func newBacklog(t *testing.T, s store.Store, size int) *backlog {
	b := &backlog{bench: setupWith(t, ways()), meter: meter.New(s), notifier: &notified{}, size: size}
	b.store = b.meter
	b.open()
	return b
}

// open opens another engine, which keeps nothing in memory of what was done before.
func (b *backlog) open() {
	d := ways()
	d.Jobs = append(d.Jobs, definition.Job{Path: "/held", Target: definition.Target{Go: "f"}})
	b.journal = journal.Open(b.store, journal.Options{Now: b.clock.now, Folds: projection.Folds()})
	b.t.Cleanup(func() { _ = b.journal.Close() })
	b.Queue = queue.Open(queue.Options{Store: b.store, Journal: b.journal, Definitions: fixed{d}, Now: b.clock.now, Notifier: b.notifier})
}

// fill enqueues the backlog, and then the task behind it.
func (b *backlog) fill(n queue.New) (behind task.ID) {
	b.t.Helper()
	n.Dialect, n.Job = task.Job, "/held"
	var group sync.WaitGroup
	const producers = 8
	for range producers {
		group.Go(func() {
			for left := b.size / producers; left > 0; {
				news := make([]queue.New, min(left, queue.MaxBatch))
				for i := range news {
					news[i] = n
				}
				if _, err := b.Enqueue(b.t.Context(), nil, news...); err != nil {
					b.t.Error(err)
					return
				}
				left -= len(news)
			}
		})
	}
	group.Wait()
	return b.enqueue(queue.New{Dialect: task.Job, Job: "/plain"})[0].Task.ID
}

// stopAll writes each task of the backlog as stopped.
func (b *backlog) stopAll() {
	b.t.Helper()
	var ops []store.Op
	write := func() {
		if err := b.store.Write(b.t.Context(), store.Write{Token: fmt.Sprint("stop", b.clock.t, ops[0].Item.Key), Ops: ops}); err != nil {
			b.t.Fatal(err)
		}
		ops = nil
	}
	r := store.Range{Table: store.Work, Partition: fmt.Sprintf("task/%08x", task.GroupHash("/held"))}
	for item, err := range store.All(b.t.Context(), b.store, r) {
		if err != nil {
			b.t.Fatal(err)
		}
		var t task.Task
		if err := layout.Decode(item, &t); err != nil {
			b.t.Fatal(err)
		}
		t.State = task.Stopped
		value, err := json.Marshal(t)
		if err != nil {
			b.t.Fatal(err)
		}
		ops = append(ops, store.Put(store.Item{Key: item.Key, Version: item.Version + 1, Value: value}, store.Always))
		if len(ops) == store.MaxOps {
			write()
		}
	}
	if len(ops) > 0 {
		write()
	}
}

// keep makes the tasks of the backlog ones that cannot be started.
func (b *backlog) keep(kind string) {
	b.t.Helper()
	switch kind {
	case "paused":
		if err := b.SetRule(b.t.Context(), "/held", rule.Pause, true); err != nil {
			b.t.Fatal(err)
		}
	case "limited":
		if leases := b.claim(1); len(leases) != 1 {
			b.t.Fatalf("%d leases, want the first", len(leases))
		}
	case "stopped":
		b.stopAll()
	}
	b.open()
	b.meter.Reset()
}

// A ready task starts within one claim, however many tasks of another job are before it that a rule or a limit holds, or that were
// stopped. If processes share the store, and the entries say that they cannot start, they are read past, by thousands; all others
// are moved or removed, some fifty with each write.
func TestAReadyTaskStartsBehindWhateverIsHeld(t *testing.T) {
	t.Parallel()
	sizes := map[string]int{"memory": 30_000, "shared": 30_000, "pebble": 5000}
	for kind, n := range map[string]queue.New{
		"paused": {}, "limited": {Concurrency: &task.Concurrency{Key: "k", Limit: 1}}, "stopped": {},
	} {
		for name, open := range stores {
			t.Run(kind+"/"+name, func(t *testing.T) {
				t.Parallel()
				size := sizes[name]
				switch {
				case testing.Short():
					size = 2000
				case os.Getenv("CI") == "true":
					size = 100_000
				}
				b := newBacklog(t, open(t), size)
				behind := b.fill(n)
				b.keep(kind)
				got := b.claim(1)
				u := b.meter.Reset()
				if len(got) != 1 || got[0].Task.ID != behind {
					t.Errorf("Claim = %d leases behind %d, want that of %s", len(got), size, behind)
				}
				t.Logf("behind %d %s tasks a claim made %d queries, %d reads, %d writes: %.0f RCU and %d WCU",
					size, kind, u.Query.Calls, u.Get.Calls, u.Write.Calls, u.Total().RCU, u.Total().WCU)
				most := 60 + size/30
				if name == "shared" && kind != "stopped" {
					most = 40 + size/1000
				}
				if calls := u.Total().Calls; calls > most {
					t.Errorf("a claim behind %d %s tasks made %d calls, want at most %d", size, kind, calls, most)
				}
			})
		}
	}
}

// A held task costs a claim a short look behind it, however many tasks are ready there.
func TestAFewThatAreHeldCostAClaimLittle(t *testing.T) {
	t.Parallel()
	b := newBacklog(t, stores["shared"](t), 8)
	b.fill(queue.New{})
	for range 200 {
		news := make([]queue.New, queue.MaxBatch)
		for i := range news {
			news[i] = queue.New{Dialect: task.Job, Job: "/plain"}
		}
		b.enqueue(news...)
	}
	b.keep("paused")
	got, u := b.claim(1), b.meter.Reset()
	if len(got) != 1 || u.Query.RCU > 25 {
		t.Errorf("a claim has %d leases by %d queries of %.0f RCU, want one, and 25 RCU at most", len(got), u.Query.Calls, u.Query.RCU)
	}
}

// Later claims move the entries that one claim has read past; each notifies others until that is done.
func TestWhatAClaimReadsPastIsTidiedByAndBy(t *testing.T) {
	t.Parallel()
	const size = 2000
	b := newBacklog(t, stores["shared"](t), size)
	b.fill(queue.New{})
	for range 9 {
		b.enqueue(queue.New{Dialect: task.Job, Job: "/plain"})
	}
	b.keep("paused")
	claims := 0
	for b.notifier.notices.Swap(1) > 0 && claims < 10 {
		b.notifier.notices.Store(0)
		if claims++; len(b.claim(1)) != 1 {
			t.Fatalf("claim %d found nothing", claims)
		}
	}
	if claims > 6 {
		t.Errorf("%d claims notified, want at most six to put %d entries out of the way", claims, size)
	}
	b.meter.Reset()
	if got, u := b.claim(1), b.meter.Reset(); len(got) != 1 || u.Write.Calls != 2 || u.Query.Calls > 6 {
		t.Errorf("afterwards a claim has %d leases by %d queries and %d writes, want one by a write and the removal of its entry", len(got), u.Query.Calls, u.Write.Calls)
	}
	if err := b.SetRule(t.Context(), "/held", rule.Pause, false); err != nil {
		t.Fatal(err)
	}
	released := 0
	for leases := b.claim(15); len(leases) > 0; leases = b.claim(15) {
		for _, l := range leases {
			if l.Task.Job == "/held" {
				released++
			}
		}
	}
	if released != size {
		t.Errorf("%d tasks start once the rule is lifted, want %d", released, size)
	}
}

// distant is a store whose queries take some time by the clock of its user.
type distant struct {
	store.Store
	clock *clock
}

// Query takes its time.
func (s *distant) Query(ctx context.Context, r store.Range) (store.Page, error) {
	s.clock.advance(time.Second)
	return s.Store.Query(ctx, r)
}

// With so many queues that one look at each takes longer than a claim may, the claim looks at each, and notifies of no empty one:
// whoever is notified would do the same.
func TestAClaimOfVeryManyQueuesNoticesForNothing(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"memory", "shared"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBacklog(t, stores[name](t), 0)
			for n := range 30 {
				b.one(queue.New{Job: "/plain", Queue: fmt.Sprint("q", n)})
			}
			for range 2 {
				for _, l := range b.claim(15) {
					b.complete(l, queue.Result{Outcome: queue.OK})
				}
			}
			b.store = &distant{b.store, b.clock}
			b.open()
			b.notifier.notices.Store(0)
			if got := b.claim(1); len(got) > 0 || b.notifier.notices.Load() > 0 {
				t.Errorf("a claim of 30 empty queues has %d leases and %d notices, want none", len(got), b.notifier.notices.Load())
			}
			b.one(queue.New{Job: "/plain", Queue: "q7"})
			if got := b.claim(1); len(got) != 1 {
				t.Errorf("a claim has %d leases, want that of the only task", len(got))
			}
		})
	}
}

// tardy is a store whose writes take some time by the clock of its user.
type tardy struct {
	store.Store
	clock *clock
	each  time.Duration
}

// Write takes its time.
func (s *tardy) Write(ctx context.Context, w store.Write) error {
	s.clock.advance(s.each)
	return s.Store.Write(ctx, w)
}

// A claim does not tidy without end: it notifies another claimer, which goes on.
func TestAClaimThatGivesUpNotices(t *testing.T) {
	t.Parallel()
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBacklog(t, open(t), 2000)
			behind := b.fill(queue.New{})
			b.keep("stopped")
			b.store = &tardy{b.store, b.clock, time.Second}
			b.open()
			for claims := 0; ; claims++ {
				b.notifier.notices.Store(0)
				got := b.claim(1)
				switch {
				case len(got) == 1 && got[0].Task.ID == behind && claims > 0:
					return
				case len(got) > 0 || b.notifier.notices.Load() == 0 || claims == 10:
					t.Fatalf("claim %d: %d leases, %d notices, want none and a notice until one has the task behind", claims, len(got), b.notifier.notices.Load())
				}
			}
		})
	}
}
