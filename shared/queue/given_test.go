package queue_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/tasklog"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// A lease is a part of its task's item until somebody changes it, and the entry of a task may outlive its start. These tests are of what
// meets there.

// overtaken is a store in which something happens just before the first write that begins with an operation of a kind in partitions whose
// names begin so.
type overtaken struct {
	store.Store
	kind      store.OpKind
	partition string

	mu sync.Mutex
	by func()
}

func (o *overtaken) Write(ctx context.Context, w store.Write) error {
	if op := &w.Ops[0]; op.Kind == o.kind && strings.HasPrefix(op.Item.Key.Partition, o.partition) {
		o.happen(nil)
	}
	return o.Store.Write(ctx, w)
}

// happen lets happen what has not yet, and says what does next.
func (o *overtaken) happen(next func()) {
	o.mu.Lock()
	by := o.by
	o.by = next
	o.mu.Unlock()
	if by != nil {
		by()
	}
}

// overtaking returns an engine of another process over such a store.
func (b *bench) overtaking(kind store.OpKind, partition string, by func()) *bench {
	b.t.Helper()
	return b.over(&overtaken{Store: b.store, kind: kind, partition: partition, by: by}, b.clock)
}

// A heartbeat that has seen the task run, and is written after its holder has ended it, is refused.
func TestAHeartbeatThatComesAfterTheEnd(t *testing.T) {
	t.Parallel()
	for _, outcome := range []queue.Outcome{queue.OK, queue.Failed} {
		b := setupWith(t, ways()).another()
		b.one(queue.New{Job: "/plain", Attempts: 2})
		l := b.claim(1)[0]
		late := b.overtaking(store.OpPut, "lease/", func() { b.complete(l, queue.Result{Outcome: outcome}) })
		if alive, err := late.Heartbeat(t.Context(), l.Token, queue.Beat{}); !errors.Is(err, queue.ErrStale) {
			t.Errorf("%s: Heartbeat = %+v, %v, want that the lease is no longer valid", outcome, alive, err)
		}
	}
}

// A request to stop that has seen the task run, and is written after the attempt has failed, stops the task before its next attempt; one
// that is written before the failure is known to it.
func TestARequestToStopMeetsAFailure(t *testing.T) {
	t.Parallel()
	b := setupWith(t, ways()).another()
	id := b.one(queue.New{Job: "/plain", Attempts: 2})
	l := b.claim(1)[0]
	late := b.overtaking(store.OpPut, "lease/", func() { b.complete(l, queue.Result{Outcome: queue.Failed}) })
	if running, err := late.Stop(t.Context(), id); running || err != nil {
		t.Errorf("Stop = %v, %v, want that it waited", running, err)
	}
	if got, err := b.Get(t.Context(), id); got.State != task.Stopped {
		t.Errorf("Get = %s, %v, want that it is stopped", got.State, err)
	}

	b.one(queue.New{Job: "/plain", Attempts: 2})
	l = b.claim(1)[0]
	if running, err := late.Stop(t.Context(), l.Task.ID); !running || err != nil {
		t.Errorf("Stop = %v, %v, want that it runs", running, err)
	}
	if state := b.complete(l, queue.Result{Outcome: queue.Failed}); state != task.Stopped {
		t.Errorf("the task is %s after a failure, want that it is stopped", state)
	}
}

// The entry of a task that was started is removed late: after the attempt has failed, and the task waits at the same place again.
func TestAnEntryThatIsRemovedLate(t *testing.T) {
	t.Parallel()
	b := setupWith(t, ways()).another()
	id := b.one(queue.New{Job: "/plain", Attempts: 2})
	late := b.overtaking(store.OpDelete, "ready/", func() {
		got, err := b.Get(t.Context(), id)
		if err != nil || got.State != task.Running {
			t.Fatalf("Get = %s, %v, want that it runs", got.State, err)
		}
		if _, err := b.Complete(t.Context(), got.Lease, queue.Result{Outcome: queue.Failed}); err != nil {
			t.Error(err)
		}
	})
	first := late.claim(1)
	if again := b.claim(1); len(first) != 1 || len(again) != 1 || again[0].Task.Attempt != 2 {
		t.Errorf("claims = %+v and %+v, want the first and the second attempt", first, again)
	}
}

// keeping is a store in which the entries of started tasks are left.
type keeping struct{ store.Store }

func (k keeping) Write(ctx context.Context, w store.Write) error {
	if op := &w.Ops[0]; op.Kind == store.OpDelete && strings.HasPrefix(op.Item.Key.Partition, "ready/") {
		return store.ErrBusy
	}
	return k.Store.Write(ctx, w)
}

// A claim that has marked the entry of a running task, and cannot remove it since the task ends just then, takes its mark back: what was
// added meanwhile between that entry and those that are started is found by others at once.
func TestTheMarkOfAStaleEntryHidesNothing(t *testing.T) {
	t.Parallel()
	b := setupWith(t, ways()).another()
	b.flood("/plain", 300)
	o := &overtaken{Store: shared{b.store}, kind: store.OpDelete, partition: "ready/"}
	p := b.joined(b.sharing(o, false))
	for len(b.claim(15))+len(p.claim(15)) > 0 {
	}
	add := func(n int, priority int64) {
		for range n {
			b.one(queue.New{Job: "/plain", Priority: priority})
		}
	}
	for round := range 30 {
		b.shareOut()
		b.joined(p)
		add(4, 5)
		keeps := b.over(keeping{b.store}, b.clock)
		running := keeps.claim(4)
		running = append(running, keeps.claim(4-len(running))...) // of those that lie in one part, a claim may find only the first
		add(4, 1)
		o.happen(func() {
			for _, l := range running {
				b.complete(l, queue.Result{Outcome: queue.OK})
			}
			add(16, 3)
		})
		found := len(p.claim(8))
		o.happen(nil)
		for range 5 {
			found += len(b.claim(15))
		}
		if len(running) != 4 || found != 20 {
			t.Fatalf("round %d: %d tasks run, and of 20 others %d are found", round, len(running), found)
		}
		b.clock.advance(100 * time.Millisecond)
	}
}

// A process that does not know of a heartbeat ends the task with success; what the heartbeat has left goes when it would have run out.
func TestASuccessDoesNotKnowOfAHeartbeat(t *testing.T) {
	t.Parallel()
	b := setupWith(t, ways()).another()
	b.enqueue(queue.New{Dialect: task.Job, Job: "/topics/a"})
	l := b.byInstance(1)[0]
	if _, err := b.restarted().Heartbeat(t.Context(), l.Token, queue.Beat{Lines: []tasklog.Line{{Message: "m"}}}); err != nil {
		t.Fatal(err)
	}
	if state := b.complete(l, queue.Result{Outcome: queue.OK}); state != task.Succeeded {
		t.Errorf("the task is %s, want %s", state, task.Succeeded)
	}
	lease, log := "lease/"+l.Token[len(l.Token)-1:], "log/"+l.Task.ID.UUID()
	if b.items(lease) != 1 || b.items(log) != 1 {
		t.Errorf("%d leases and %d chunks of a log are left, want one of each: otherwise this test shows nothing", b.items(lease), b.items(log))
	}
	b.clock.advance(l.Length)
	if s, err := b.Sweep(t.Context()); err != nil || s.Lost != 0 {
		t.Errorf("Sweep = %+v, %v, want no lost lease", s, err)
	}
	if b.items(lease) != 0 || b.items(log) != 0 {
		t.Errorf("%d leases and %d chunks of a log are left after a sweep", b.items(lease), b.items(log))
	}
}

// unmarkable is a shared store that takes no mark in the third part of a line while it fails.
type unmarkable struct {
	shared
	fails atomic.Bool
}

func (u *unmarkable) Write(ctx context.Context, w store.Write) error {
	op := &w.Ops[0]
	if u.fails.Load() && len(w.Ops) == 1 && op.Kind == store.OpPut && strings.HasPrefix(op.Item.Key.Partition, "ready.2/") {
		return store.ErrUnavailable
	}
	return u.shared.Write(ctx, w)
}

// A claim that cannot mark what it has chosen in one part of a line hides nothing in the others.
func TestAMarkThatFailsHidesNothing(t *testing.T) {
	t.Parallel()
	b := setupWith(t, ways()).another()
	b.flood("/plain", 300)
	s := &unmarkable{shared: shared{b.store}}
	p := b.over(s, b.clock)
	for len(b.claim(15))+len(p.claim(15)) > 0 {
	}
	for range 16 {
		b.one(queue.New{Job: "/plain"})
	}
	b.one(queue.New{Job: "/plain", Priority: 9})
	o := &overtaken{Store: s, kind: store.OpPut, partition: "task/", by: func() { b.claim(1) }}
	p = b.over(o, b.clock)
	p.claim(1) // loses to another, and goes by marks from here on
	s.fails.Store(true)
	for err := error(nil); err == nil && len(b.places()) > 0; { // which parts it chooses is open
		_, err = p.Claim(t.Context(), queue.Claimer{Instance: "i"}, 12)
	}
	s.fails.Store(false)
	for range 4 {
		b.claim(15)
	}
	if left := len(b.places()); left > 0 {
		t.Errorf("%d tasks are hidden after a claim that has failed", left)
	}
}
