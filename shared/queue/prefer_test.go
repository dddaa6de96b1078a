package queue_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/rule"
	"github.com/millrace/millrace/shared/store/meter"
	"github.com/millrace/millrace/shared/task"
)

// preferring is an engine with a list of instances.
type preferring struct {
	*bench
	meter     *meter.Meter
	instances []queue.Claimer
}

// instance returns an instance of that name that runs every topic.
func instance(name string, capacity int) queue.Claimer {
	return queue.Claimer{Instance: name + "/1", Name: name, Capacity: capacity, Jobs: []string{"/topics/**"}}
}

func preferences(t *testing.T, alone bool, instances ...queue.Claimer) *preferring {
	t.Helper()
	d := &definition.Set{Queues: []definition.Queue{
		{Name: "strict", Topics: []string{"strict"}, Type: definition.Ordered},
		{Name: "fair", Topics: []string{"fair"}, Type: definition.RoundRobin},
	}}
	p := &preferring{bench: setupWith(t, d), instances: instances}
	if !alone {
		p.store = shared{p.store}
	}
	p.meter = meter.New(p.store)
	p.store = p.meter
	p.journal = journal.Open(p.store, journal.Options{Now: p.clock.now, Folds: projection.Folds()})
	p.Queue = queue.Open(queue.Options{Store: p.store, Journal: p.journal, Definitions: fixed{d}, Now: p.clock.now, Instances: p.there})
	t.Cleanup(func() { _ = p.journal.Close() })
	return p
}

func (p *preferring) there(context.Context) ([]queue.Claimer, error) { return p.instances, nil }

func (p *preferring) by(by queue.Claimer, n int) []queue.Lease {
	p.t.Helper()
	leases, err := p.Claim(p.t.Context(), by, n)
	if err != nil {
		p.t.Fatal(err)
	}
	return leases
}

// want claims for an instance and expects these tasks.
func (p *preferring) want(by queue.Claimer, what string, want ...task.ID) []queue.Lease {
	p.t.Helper()
	leases := p.by(by, 15)
	if diff := cmp.Diff(want, ids(leases)); diff != "" {
		p.t.Errorf("%s (-want +got):\n%s", what, diff)
	}
	return leases
}

// nothingIn expects that partitions of the table work are empty.
func (p *preferring) nothingIn(partitions ...string) {
	p.t.Helper()
	for _, partition := range partitions {
		if n := p.items(partition); n != 0 {
			p.t.Errorf("%d items are left in %q", n, partition)
		}
	}
}

func (p *preferring) done(leases []queue.Lease) {
	p.t.Helper()
	for _, l := range leases {
		p.end(l, queue.Result{Outcome: queue.OK})
	}
}

func prefer(name string) func(*queue.New) {
	return func(n *queue.New) { n.Prefer = name }
}

// A task is kept for its preferred instance for some seconds; no other task waits for it, and the instance takes it first. Then any
// instance may take it, at the rank that it would have had.
func TestPreferredInstance(t *testing.T) {
	t.Parallel()
	for _, topic := range []string{"a", "fair"} {
		t.Run(topic, func(t *testing.T) {
			t.Parallel()
			eitherWay(t, func(t *testing.T, alone bool) {
				mine, other := instance("mine", 4), instance("other", 10)
				p := preferences(t, alone, mine, other)
				kept := p.add(topic, prefer("mine"))
				first, second := p.add(topic), p.add(topic)
				p.want(other, "another takes", first, second)
				third := p.add(topic)
				p.want(mine, "the instance takes", kept, third)
				p.nothingIn("due")

				late := p.add(topic, prefer("mine"))
				p.clock.advance(time.Second)
				p.want(other, "another takes")
				last := p.add(topic)
				p.clock.advance(queue.PreferFor)
				p.want(other, "another takes in the end", late, last)
				p.nothingIn("due", "ready/main@/topics/a\nmine", "ready/main@/topics/a", "ready/fair@/topics/fair\nmine", "ready/fair@/topics/fair")
			})
		})
	}
}

// The hint is ignored for an instance that could not start the task, in an ordered queue, and after the first attempt.
func TestPreferenceIsAHint(t *testing.T) {
	t.Parallel()
	eitherWay(t, func(t *testing.T, alone bool) {
		full, narrow, other := instance("full", 1), instance("narrow", 4), instance("other", 20)
		narrow.Jobs = []string{"/topics/b"}
		p := preferences(t, alone, full, narrow, other)
		held := p.add("a", prefer("full"))
		p.want(full, "the instance takes", held)
		gone, runs, busy := p.add("a", prefer("gone")), p.add("a", prefer("narrow")), p.add("a", prefer("full"))
		strict := p.add("strict", prefer("narrow"))
		got := map[task.ID]bool{}
		var again queue.Lease
		for _, l := range p.by(other, 15) {
			if got[l.Task.ID] = true; l.Task.ID == gone {
				again = l
			}
		}
		if diff := cmp.Diff(map[task.ID]bool{gone: true, runs: true, busy: true, strict: true}, got); diff != "" {
			t.Fatalf("another takes (-want +got):\n%s", diff)
		}
		p.instances = append(p.instances, instance("gone", 4)) // it is there again
		p.end(again, queue.Result{Outcome: queue.Failed})
		p.clock.advance(time.Minute - time.Second)
		p.want(other, "another takes the second attempt", gone)
	})
}

// An instance that has filled all its slots leaves the rest to others at once.
func TestWhatAFullInstanceLeavesIsAnybodys(t *testing.T) {
	t.Parallel()
	eitherWay(t, func(t *testing.T, alone bool) {
		mine, other := instance("mine", 2), instance("other", 20)
		p := preferences(t, alone, mine, other)
		var all []task.ID
		for range 5 {
			all = append(all, p.add("a", prefer("mine")))
		}
		p.want(mine, "the instance takes", all[0], all[1])
		p.want(other, "another takes", all[2:]...)
	})
}

// That holds for each of its jobs, also behind one of which nothing is left.
func TestWhatAFullInstanceLeavesOfEachJobIsAnybodys(t *testing.T) {
	t.Parallel()
	eitherWay(t, func(t *testing.T, alone bool) {
		mine, other := instance("mine", 3), instance("other", 20)
		p := preferences(t, alone, mine, other)
		all := []task.ID{p.add("a", prefer("mine"))}
		for range 5 {
			all = append(all, p.add("b", prefer("mine")))
		}
		p.want(mine, "the instance takes", all[0], all[1], all[2])
		p.want(other, "another takes", all[3:]...)
	})
}

// A delayed task is kept from when it may start. One that is dropped, or held by a rule, leaves no entry.
func TestPreferenceOfWhatWaits(t *testing.T) {
	t.Parallel()
	eitherWay(t, func(t *testing.T, alone bool) {
		mine, other := instance("mine", 10), instance("other", 20)
		p := preferences(t, alone, mine, other, instance("idle", 10))
		delayed := p.add("a", prefer("mine"), func(n *queue.New) { n.NotBefore = p.clock.now().Add(time.Minute) })
		p.clock.advance(time.Minute)
		p.want(other, "another takes")
		p.done(p.want(mine, "the instance takes", delayed))

		dropped, purged := p.add("a", prefer("mine")), p.add("fair", prefer("idle"))
		if err := p.Remove(t.Context(), dropped); err != nil {
			t.Fatal(err)
		}
		if n, err := p.Purge(t.Context(), "fair"); n != 1 || err != nil {
			t.Errorf("Purge = %d, %v, want 1: %s", n, err, purged)
		}
		paused := p.add("b", prefer("mine"))
		p.rule("/topics/b", rule.Pause)
		p.want(mine, "the instance takes of what is held")
		if n := p.items("due"); n != 1 {
			t.Errorf("%d are due, want that of the one that was dropped", n)
		}
		if err := p.SetRule(t.Context(), "/topics/b", rule.Pause, false); err != nil {
			t.Fatal(err)
		}
		p.done(p.want(other, "another takes what was held", paused))
		for range 3 { // all is swept
			p.clock.advance(2 * time.Minute)
			if _, err := p.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			p.by(other, 15)
		}
		p.nothingIn("due", "rules", "ready/main@/topics/a\nmine", "ready/fair@/topics/fair\nidle", "ready/main@/topics/a")
	})
}

// A task without a hint costs no more while others have one.
func TestPreferencesCostOthersNothing(t *testing.T) {
	t.Parallel()
	mine, other := instance("mine", 50), instance("other", 50)
	cost := func(hinted int) (claims meter.Usage) {
		p := preferences(t, false, mine, other)
		p.add("a")
		p.by(other, 1) // what a process does once is behind it
		for range hinted {
			p.add("a", prefer("mine"))
		}
		for range 10 {
			p.add("a")
		}
		p.meter.Reset()
		for range 10 {
			if got := p.by(other, 1); len(got) != 1 {
				t.Fatalf("%d leases, want 1", len(got))
			}
		}
		return p.meter.Reset()
	}
	without, with := cost(0), cost(20)
	if without.Total().Calls != with.Total().Calls || without.Total().WCU != with.Total().WCU {
		t.Errorf("ten claims cost %+v, and %+v while others are kept", without.Total(), with.Total())
	}
}

// The preferred instance is woken if it waits, and no other; if it does not take the task, any instance may after the time.
func TestPreferenceWakes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mine, other := instance("mine", 4), instance("other", 4)
		p := preferences(t, true, mine, other)
		p.clock.t = time.Now()
		theirs, ours := p.Wait(other), p.Wait(mine)
		id := p.add("a", prefer("mine"))
		select {
		case <-ours.Ready():
		default:
			t.Error("the instance was not woken")
		}
		select {
		case <-theirs.Ready():
			t.Error("another was woken")
		default:
		}
		ours.End()
		p.clock.advance(queue.PreferFor)
		if _, err := p.Promote(t.Context()); err != nil {
			t.Fatal(err)
		}
		select {
		case <-theirs.Ready():
		default:
			t.Error("another was not woken in the end")
		}
		theirs.End()
		p.want(other, "another takes", id)
	})
}
