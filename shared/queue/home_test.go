package queue_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// catalog is a set of definitions that changes. Current may return the set before a change; Refresh returns the set in force.
type catalog struct {
	mu           sync.Mutex
	old, inForce *definition.Set
	asked        int
}

func (b *catalog) Current(context.Context) (*definition.Set, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.old, nil
}

func (b *catalog) Refresh(context.Context) (*definition.Set, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked++
	return b.inForce, nil
}

// becomes changes the set; seen says whether readers see it at once.
func (b *catalog) becomes(set *definition.Set, seen bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.inForce = set; seen {
		b.old = set
	}
}

func (b *catalog) refreshed() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.asked
}

// server returns a set in which this server runs these topics; instances run others.
func server(topics ...string) *definition.Set {
	d := &definition.Set{}
	for _, topic := range topics {
		d.Jobs = append(d.Jobs, definition.Job{Path: queue.TopicPath(topic), Target: definition.Target{Go: "f"}})
	}
	return d
}

// declaredIn returns an engine with the definitions of a catalog, on a store of its own or a shared one.
func declaredIn(t *testing.T, alone bool, set *definition.Set) (*bench, *catalog) {
	t.Helper()
	d := &catalog{old: set, inForce: set}
	b := setupWith(t, set)
	if !alone {
		b.store = shared{b.store}
	}
	b.journal = journal.Open(b.store, journal.Options{Now: b.clock.now, Folds: projection.Folds()})
	b.Queue = queue.Open(queue.Options{Store: b.store, Journal: b.journal, Definitions: d, Now: b.clock.now})
	t.Cleanup(func() { _ = b.journal.Close() })
	return b, d
}

func eitherWay(t *testing.T, test func(t *testing.T, alone bool)) {
	t.Helper()
	for name, alone := range map[string]bool{"alone": true, "shared": false} {
		t.Run(name, func(t *testing.T) { t.Parallel(); test(t, alone) })
	}
}

// byInstance claims as an instance that runs every topic.
func (b *bench) byInstance(n int) []queue.Lease {
	b.t.Helper()
	leases, err := b.Claim(b.t.Context(), queue.Claimer{Instance: "w/1", Jobs: []string{"/topics/**"}}, n)
	if err != nil {
		b.t.Fatal(err)
	}
	return leases
}

// ids returns the tasks of leases.
func ids(leases []queue.Lease) (all []task.ID) {
	for i := range leases {
		all = append(all, leases[i].Task.ID)
	}
	return all
}

// Waiting tasks follow new definitions at once: claimers are notified when a limit is raised, and entries move to the lines of those
// who run them now.
func TestWhatWaitsFollowsNewDefinitions(t *testing.T) {
	t.Parallel()
	limited := func(n int, topics ...string) *definition.Set {
		set := server(topics...)
		set.Queues = []definition.Queue{{Name: definition.MainQueue, MaxParallel: n}}
		return set
	}
	b, d := declaredIn(t, true, limited(1))
	var want []task.ID
	for range 4 {
		want = append(want, b.add("a"))
	}
	if got := b.byInstance(4); len(got) != 1 {
		t.Fatalf("%d leases, want 1: that is the limit", len(got))
	}
	w := b.Wait(queue.Claimer{Instance: "w/1", Jobs: []string{"/topics/**"}})
	d.becomes(limited(2), true)
	if err := b.Redeclared(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-w.Ready():
		w.Looks()
	default:
		t.Error("nobody was woken when the limit was raised")
	}
	if diff := cmp.Diff(want[1:2], ids(b.byInstance(4))); diff != "" {
		t.Errorf("started when the limit was raised (-want +got):\n%s", diff)
	}
	d.becomes(limited(3, "a"), true)
	if err := b.Redeclared(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want[2:3], ids(b.claim(4))); diff != "" {
		t.Errorf("started by the server, which runs the topic now (-want +got):\n%s", diff)
	}
}

// A topic that instances run, or would run, gets a target of this server: the server runs the waiting tasks, in order, whether an
// instance meets them first or the sweep does.
func TestWhatWaitsMovesToTheServer(t *testing.T) {
	t.Parallel()
	for _, sweep := range []bool{true, false} {
		t.Run(fmt.Sprintf("sweep=%v", sweep), func(t *testing.T) {
			t.Parallel()
			eitherWay(t, func(t *testing.T, alone bool) {
				b, d := declaredIn(t, alone, server())
				var want []task.ID
				for range 100 {
					want = append(want, b.add("a"))
				}
				other := b.add("b")
				if got := b.claim(1); len(got) != 0 {
					t.Fatalf("%d leases of a topic for instances", len(got))
				}
				d.becomes(server("a"), true)
				if sweep {
					s, err := b.Sweep(t.Context())
					if err != nil || s.Moved != len(want) {
						t.Errorf("Sweep = %+v, %v, want %d moved", s, err, len(want))
					}
					if s, err = b.Sweep(t.Context()); err != nil || s.Moved != 0 {
						t.Errorf("a second sweep moved %d, %v, want none", s.Moved, err)
					}
				} else if diff := cmp.Diff([]task.ID{other}, ids(b.byInstance(15))); diff != "" {
					t.Errorf("what the instance runs (-want +got):\n%s", diff)
				}
				var got []task.ID
				for leases := b.claim(10); len(leases) > 0; leases = b.claim(10) {
					got = append(got, ids(leases)...)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("what the server runs (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A task that falls due, or is retried, goes directly to the line of those who run it at that time.
func TestWhatWaitsForItsTimeGoesToTheServer(t *testing.T) {
	t.Parallel()
	eitherWay(t, func(t *testing.T, alone bool) {
		b, d := declaredIn(t, alone, server())
		again := b.add("a", func(n *queue.New) { n.RetryDelay = time.Minute })
		b.end(b.byInstance(1)[0], queue.Result{Outcome: queue.Failed})
		delayed := b.add("a", func(n *queue.New) { n.NotBefore = b.clock.now().Add(time.Minute) })
		at := b.add("b", func(n *queue.New) { n.RetryDelay = time.Microsecond })
		lease := b.byInstance(1)[0]
		d.becomes(server("a", "b"), true)
		b.end(lease, queue.Result{Outcome: queue.Failed})
		b.clock.advance(time.Hour)
		got := map[task.ID]bool{}
		for _, l := range b.claim(15) {
			got[l.Task.ID] = true
		}
		if diff := cmp.Diff(map[task.ID]bool{again: true, delayed: true, at: true}, got); diff != "" {
			t.Errorf("what the server runs (-want +got):\n%s", diff)
		}
	})
}

// The target is removed again: instances run the waiting tasks, whatever they wait for, and none ends as missing. The event of a
// handler that is gone does.
func TestWhatWaitsMovesToInstances(t *testing.T) {
	t.Parallel()
	eitherWay(t, func(t *testing.T, alone bool) {
		with := server("a")
		with.Handlers = set().Handlers
		b, d := declaredIn(t, alone, with)
		ready := b.add("a")
		retried := b.add("a")
		delayed := b.add("a", func(n *queue.New) { n.NotBefore = b.clock.now().Add(time.Minute) })
		missed := b.enqueue(queue.New{Dialect: task.Event, Job: "/canvases/c/WORKER/x"})[0].Task.ID
		leases := b.claim(2)
		d.becomes(server(), false) // which this process has not heard of yet
		b.end(leases[1], queue.Result{Outcome: queue.Failed})
		b.end(leases[0], queue.Result{Outcome: queue.Failed})
		d.becomes(server(), true)
		b.clock.advance(time.Hour)
		if got := b.claim(15); len(got) != 0 {
			t.Errorf("the server runs %v, want nothing", ids(got))
		}
		got := map[task.ID]bool{}
		for _, l := range b.byInstance(15) {
			got[l.Task.ID] = true
		}
		if diff := cmp.Diff(map[task.ID]bool{ready: true, retried: true, delayed: true}, got); diff != "" {
			t.Errorf("what the instance runs (-want +got):\n%s", diff)
		}
		if got, err := b.Get(t.Context(), missed); err != nil || got.State != task.Missing {
			t.Errorf("the event of a handler that is gone is %s, %v, want %s", got.State, err, task.Missing)
		}
	})
}

// What waits for instances that run a handler which is gone is missing, whether an instance claims it or none does; not by a process that has not heard
// of the handler yet.
func TestWhatWaitsForInstancesIsMissingOnceItsHandlerIsGone(t *testing.T) {
	t.Parallel()
	by := queue.Claimer{Instance: "w/1", Jobs: []string{"/canvases/**"}}
	ends := map[string]func(b *bench) error{
		"claim": func(b *bench) error { _, err := b.Claim(b.t.Context(), by, 5); return err },
		"sweep": func(b *bench) error { _, err := b.Sweep(b.t.Context()); return err },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eitherWay(t, func(t *testing.T, alone bool) {
				with := server()
				with.Handlers = []definition.Handler{{Canvas: "c", Space: "WORKER", Name: "x", Target: definition.Target{Instances: true}}}
				b, d := declaredIn(t, alone, with)
				event := b.enqueue(queue.New{Dialect: task.Event, Job: "/canvases/c/WORKER/x"})[0].Task.ID
				stopped := b.enqueue(queue.New{Dialect: task.Event, Job: "/canvases/c/WORKER/x"})[0].Task.ID
				if _, err := b.Stop(t.Context(), stopped); err != nil {
					t.Fatal(err)
				}
				job := b.add("a")
				d.becomes(server(), true)
				d.becomes(with, false) // which this process has not heard of yet
				if _, err := b.Sweep(t.Context()); err != nil {
					t.Fatal(err)
				}
				if got, err := b.Get(t.Context(), event); err != nil || !got.State.Queued() {
					t.Errorf("the event of a handler that was declared elsewhere is %s, %v, want it to wait", got.State, err)
				}
				d.becomes(server(), true)
				if err := end(b); err != nil {
					t.Fatal(err)
				}
				if got, err := b.Get(t.Context(), event); err != nil || got.State != task.Missing {
					t.Errorf("the event of a handler that is gone is %s, %v, want %s", got.State, err, task.Missing)
				}
				if _, err := b.Sweep(t.Context()); err != nil {
					t.Fatal(err)
				}
				line := layout.Line{Queue: definition.EventQueue, Job: "/canvases/c/WORKER/x"}
				left, err := b.store.Query(t.Context(), store.Range{Table: store.Work, Partition: layout.ReadyPartition(line)})
				if err != nil || len(left.Items) > 0 {
					t.Errorf("%d entries are left, %v", len(left.Items), err)
				}
				if got, err := b.Get(t.Context(), job); err != nil || !got.State.Queued() {
					t.Errorf("a job of a topic is %s, %v, want it to wait", got.State, err)
				}
			})
		})
	}
}

// While one process knows of a change and another does not, no entry is moved back and forth between their lines, and no task ends
// as missing: a process that is to move an entry reads the set in force.
func TestNothingIsMovedByAnOldSet(t *testing.T) {
	t.Parallel()
	b, d := declaredIn(t, false, server())
	d.becomes(server("a"), false)
	counted := &writes{Store: b.store}
	there := queue.Open(queue.Options{Store: counted, Journal: journal.Open(counted, journal.Options{Now: b.clock.now, Folds: projection.Folds()}), Definitions: &catalog{
		old: server("a"), inForce: server("a"),
	}, Now: b.clock.now})
	added, err := there.Enqueue(t.Context(), nil, queue.New{Dialect: task.Job, Job: "/topics/a"})
	if err != nil {
		t.Fatal(err)
	}
	if got := b.byInstance(1); len(got) != 0 {
		t.Errorf("an instance runs %v", ids(got))
	}
	leases := b.claim(1) // by a process that takes the job for one of instances
	if diff := cmp.Diff([]task.ID{added.Tasks[0].Task.ID}, ids(leases)); diff != "" {
		t.Errorf("what the server runs (-want +got):\n%s", diff)
	}
	if n := d.refreshed(); n != 1 {
		t.Errorf("the set in force was asked for %d times, want once", n)
	}
}

// An instance and a server wait for tasks; each change of who runs a topic wakes those who wait, once, and then all is quiet.
func TestAMoveWakesWhoeverWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, d := declaredIn(t, true, server("a"))
		b.clock.t = time.Now()
		by := queue.Claimer{Instance: "w/1", Jobs: []string{"/topics/**"}}
		w := b.Wait(by)
		b.add("a")
		d.becomes(server(), true)
		if got := b.claim(5); len(got) != 0 {
			t.Fatalf("the server runs %v", ids(got))
		}
		select {
		case <-w.Ready():
		default:
			t.Fatal("the instance was not woken")
		}
		if !w.Looks() {
			t.Error("it is not to look")
		}
		w = b.Wait(by)
		d.becomes(server("a"), true)
		for range 3 {
			if _, err := b.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		select {
		case <-w.Ready():
			t.Error("the instance was woken for what it does not run")
		default:
		}
		w.End()
		if got := b.claim(5); len(got) != 1 {
			t.Errorf("the server runs %d, want 1", len(got))
		}
	})
}
