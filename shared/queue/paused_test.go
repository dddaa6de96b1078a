package queue_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// paused is a store whose user is paused once, after it has read from a partition or before it writes, while another function
// runs.
type paused struct {
	store.Store
	read      string // the partition, or how its name begins; "": before a write
	meanwhile func()
}

func (p *paused) pause() {
	if act := p.meanwhile; act != nil {
		p.meanwhile = nil
		act()
	}
}

// Query returns what was there before the pause.
func (p *paused) Query(ctx context.Context, r store.Range) (store.Page, error) {
	page, err := p.Store.Query(ctx, r)
	if p.read != "" && strings.HasPrefix(r.Partition, p.read) && len(page.Items) > 0 {
		p.pause()
	}
	return page, err
}

// Get returns what was there before the pause.
func (p *paused) Get(ctx context.Context, keys ...store.Key) ([]*store.Item, error) {
	items, err := p.Store.Get(ctx, keys...)
	if p.read != "" && strings.HasPrefix(keys[0].Partition, p.read) && items[0] != nil {
		p.pause()
	}
	return items, err
}

// Write goes through after the pause.
func (p *paused) Write(ctx context.Context, w store.Write) error {
	if p.read == "" {
		p.pause()
	}
	return p.Store.Write(ctx, w)
}

// beside returns an engine of another process whose clock stops now, and that is paused at that point.
func (b *bench) beside(read string, meanwhile func()) *bench {
	b.t.Helper()
	return b.over(&paused{b.store, read, meanwhile}, clockAt(b.clock.now()))
}

// Two processes sweep the same tasks, and one is paused in the middle, with its clock stopped: it does not repeat what the other has
// done meanwhile, and does not end leases that began since.
func TestOfTwoThatSweepAtOnceNothingHappensTwice(t *testing.T) {
	t.Parallel()
	for name, read := range map[string]string{"it has seen a lease that ran out": "task/", "it is about to write": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupWith(t, ways()).another()
			id := b.one(queue.New{Job: "/plain", Attempts: 3})
			lost := b.claim(1)[0]
			b.clock.advance(lost.Length + time.Second) // its event is a little later than its lease
			var second []queue.Lease
			slow := b.beside(read, func() {
				if s, err := b.Sweep(t.Context()); err != nil || s.Lost != 1 {
					t.Errorf("Sweep = %+v, %v, want a lost lease", s, err)
				}
				b.clock.advance(time.Minute)
				second = b.claim(1)
			})
			if _, err := slow.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			if len(second) != 1 || second[0].Task.Attempt != 2 {
				t.Fatalf("%d leases in between, want the second attempt", len(second))
			}
			b.complete(second[0], queue.Result{Outcome: queue.OK})
			want := []string{"TaskAdded", "TaskStarted", "TaskEnded", "TaskStarted", "TaskEnded", "TaskClosed"}
			if diff := cmp.Diff(want, b.events(id)); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// A sweep that has seen a lease as over when a heartbeat comes leaves it, and does not count it as lost.
func TestASweepThatAHeartbeatForestallsLosesNothing(t *testing.T) {
	t.Parallel()
	b := setupWith(t, ways()).another()
	b.one(queue.New{Job: "/plain"})
	l := b.claim(1)[0]
	b.clock.advance(l.Length + time.Second)
	slow := b.beside("task/", func() {
		if _, err := b.Heartbeat(t.Context(), l.Token, queue.Beat{}); err != nil {
			t.Error(err)
		}
	})
	if s, err := slow.Sweep(t.Context()); err != nil || s.Lost != 0 {
		t.Errorf("Sweep = %+v, %v, want no lost lease", s, err)
	}
	if state := b.complete(l, queue.Result{Outcome: queue.OK}); state != task.Succeeded {
		t.Errorf("the task is %s, want %s", state, task.Succeeded)
	}
}

// The same for a task that falls due: it is started once.
func TestOfTwoThatPromoteAtOnceATaskIsStartedOnce(t *testing.T) {
	t.Parallel()
	for name, read := range map[string]string{"it has seen what is due": "due", "it is about to write": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupWith(t, ways()).another()
			due := b.clock.now().Add(time.Hour)
			id := b.one(queue.New{Job: "/plain", NotBefore: due, Attempts: 2})
			b.clock.t = due
			slow := b.beside(read, func() {
				if l := b.claim(1); len(l) != 1 || b.complete(l[0], queue.Result{Outcome: queue.Failed}) != task.Ready {
					t.Error("the task does not run in between")
				}
			})
			if _, err := slow.Promote(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, who := range []*bench{slow, b} {
				for _, l := range who.claim(5) {
					who.complete(l, queue.Result{Outcome: queue.OK})
				}
			}
			want := []string{"TaskAdded", "TaskStarted", "TaskEnded", "TaskStarted", "TaskEnded", "TaskClosed"}
			if diff := cmp.Diff(want, b.events(id)); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}
