package queue_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/rule"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/task"
)

// handing is an engine on a store that counts writes.
func handing(t *testing.T, alone bool) (*bench, *writes) {
	t.Helper()
	w := &writes{Store: memory.New(memory.Options{Shared: !alone})}
	b := setup(t)
	b.store = w
	b.journal = journal.Open(w, journal.Options{Now: b.clock.now, Folds: projection.Folds()})
	t.Cleanup(func() { _ = b.journal.Close() })
	set := &definition.Set{
		Jobs: []definition.Job{
			{Path: "/strict", Target: definition.Target{Instances: true}, Queue: "strict"},
			{Path: "/few", Target: definition.Target{Instances: true}, Queue: "few"},
			{Path: "/fair", Target: definition.Target{Instances: true}, Queue: "fair"},
		},
		Queues: []definition.Queue{
			{Name: "strict", Type: definition.Ordered}, {Name: "few", MaxParallel: 2}, {Name: "fair", Type: definition.RoundRobin},
		},
	}
	b.Queue = queue.Open(queue.Options{Store: w, Journal: b.journal, Definitions: fixed{set}, Now: b.clock.now})
	for _, job := range []string{"/topics/a", "/strict", "/few", "/fair"} { // so that their lines are known
		b.enqueue(queue.New{Dialect: task.Job, Job: job})
		b.complete(b.byWaiter()[0], queue.Result{Outcome: queue.OK})
	}
	return b, w
}

var waiter = queue.Claimer{Instance: "w/1", Name: "w", Jobs: []string{"/topics/**", "/strict", "/few", "/fair"}, Capacity: 3}

// accepting begins to wait, as an instance that has found nothing.
func (b *bench) accepting(max int) *queue.Waiting {
	w := b.Wait(waiter)
	w.Accept(waiter, max)
	return w
}

// given returns what was started for one that waits, and whether it was woken at all.
func given(t *testing.T, w *queue.Waiting) (leases []queue.Lease, woken bool) {
	t.Helper()
	select {
	case <-w.Ready():
	default:
		return nil, false
	}
	leases, err := w.Leases()
	if err != nil {
		t.Error(err)
	}
	return leases, true
}

func TestATaskIsStartedForWhoWaitsInTheWriteThatAddsIt(t *testing.T) {
	t.Parallel()
	eitherWay(t, aTaskIsStartedForWhoWaits)
}

func aTaskIsStartedForWhoWaits(t *testing.T, alone bool) {
	b, store := handing(t, alone)
	n := queue.New{Dialect: task.Job, Job: "/topics/a", Payload: []byte(`1`)}
	w := b.accepting(1)
	before := store.calls.Load()
	added := b.enqueue(n)[0]
	if made := store.calls.Load() - before; made != 1 {
		t.Errorf("%d writes, want one", made)
	}
	leases, _ := given(t, w)
	if len(leases) != 1 || leases[0].Task.ID != added.Task.ID || leases[0].Task.Attempt != 1 || string(leases[0].Task.Payload) != "1" {
		t.Fatalf("the waiting instance was given %+v", leases)
	}
	if got := b.byWaiter(); len(got) != 0 {
		t.Errorf("a task that was started is claimed again: %+v", got)
	}
	b.complete(leases[0], queue.Result{Outcome: queue.OK})
	page, err := b.journal.ReadAfter(t.Context(), journal.Request{Limit: 100, Causes: true})
	if err != nil {
		t.Fatal(err)
	}
	var types []string
	last := event.ID(0)
	for _, e := range page.Events {
		if e.Key.TaskID != string(added.Task.ID) {
			continue
		}
		if e.Cause.ID() != last {
			t.Errorf("%s names %d as its cause, want %d", e.Type, e.Cause.ID(), last)
		}
		types, last = append(types, e.Type), e.ID
	}
	if want := []string{event.TaskAdded, event.TaskStarted, event.TaskEnded, event.TaskClosed}; !slices.Equal(types, want) {
		t.Errorf("events %v, want %v", types, want)
	}
}

// Of several tasks, the most urgent are started, as many as are accepted and the instance has slots for; the others are ready.
func TestOfManyNewTasksTheFirstAreStartedForWhoWaits(t *testing.T) {
	t.Parallel()
	eitherWay(t, theFirstAreStartedForWhoWaits)
}

func theFirstAreStartedForWhoWaits(t *testing.T, alone bool) {
	for _, accepted := range []int{2, 5} {
		b, _ := handing(t, alone)
		w := b.accepting(accepted)
		var news []queue.New
		for _, p := range []int64{1, 5, 3, 9, 7} {
			news = append(news, queue.New{Dialect: task.Job, Job: "/topics/a", Priority: p})
		}
		b.enqueue(news...)
		leases, _ := given(t, w)
		want := []int64{9, 7, 5}[:min(accepted, waiter.Capacity)]
		var got []int64
		for _, l := range leases {
			got = append(got, l.Task.Priority)
		}
		if !slices.Equal(got, want) {
			t.Errorf("of %d accepted, those with priorities %v were started, want %v", accepted, got, want)
		}
		b.complete(leases[0], queue.Result{Outcome: queue.OK})
		if next := b.byWaiter(); len(next) != 1 || next[0].Task.Priority != want[len(want)-1]-2 {
			t.Errorf("then %+v was claimed", next)
		}
	}
}

func (b *bench) byWaiter() []queue.Lease {
	b.t.Helper()
	leases, err := b.Claim(b.t.Context(), waiter, 1)
	if err != nil {
		b.t.Fatal(err)
	}
	return leases
}

// What is no plain case becomes ready, as it does where nobody waits, and is claimed by the rules of claims.
func TestWhatIsNotPlainIsNotStartedForWhoWaits(t *testing.T) {
	t.Parallel()
	eitherWay(t, whatIsNotPlainBecomesReady)
}

func whatIsNotPlainBecomesReady(t *testing.T, alone bool) {
	for name, c := range map[string]struct {
		before func(b *bench)
		task   queue.New
		quiet  bool // nobody is woken for it
		first  int64
	}{
		"a better one is ready": {
			before: func(b *bench) { b.enqueue(queue.New{Dialect: task.Job, Job: "/topics/a", Priority: 9}) },
			task:   queue.New{Job: "/topics/a", Priority: 1}, first: 9,
		},
		"an older one is ready": {
			before: func(b *bench) {
				b.enqueue(queue.New{Dialect: task.Job, Job: "/topics/b", Priority: 1, Payload: []byte(`1`)})
			},
			task: queue.New{Job: "/topics/a", Priority: 1}, first: 1,
		},
		"the job is paused": {
			before: func(b *bench) {
				if err := b.SetRule(b.t.Context(), "/topics/a", rule.Pause, true); err != nil {
					b.t.Fatal(err)
				}
			},
			task: queue.New{Job: "/topics/a"}, first: -1,
		},
		"the queue is suspended": {
			before: func(b *bench) {
				if err := b.Suspend(b.t.Context(), "main", true); err != nil {
					b.t.Fatal(err)
				}
			},
			task: queue.New{Job: "/topics/a"}, first: -1,
		},
		"a queue in order":     {task: queue.New{Job: "/strict"}},
		"a queue with a limit": {task: queue.New{Job: "/few"}},
		"a queue in turns":     {task: queue.New{Job: "/fair"}},
		"a concurrency key":    {task: queue.New{Job: "/topics/a", Concurrency: &task.Concurrency{Key: "k", Limit: 1}}},
		"another's job":        {task: queue.New{Job: "/elsewhere"}, quiet: true, first: -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, _ := handing(t, alone)
			if c.before != nil {
				c.before(b)
			}
			w := b.accepting(1)
			c.task.Dialect = task.Job
			b.enqueue(c.task)
			leases, woken := given(t, w)
			if len(leases) > 0 || woken == c.quiet {
				t.Errorf("the waiting instance was given %+v, woken: %t", leases, woken)
			}
			w.Looks()
			next := b.byWaiter()
			switch {
			case c.first < 0 && len(next) > 0:
				t.Errorf("claimed %+v, want none", next)
			case c.first >= 0 && (len(next) != 1 || next[0].Task.Priority != c.first):
				t.Errorf("claimed %+v, want one of priority %d", next, c.first)
			}
		})
	}
}

// Who leaves while a task is started for it has its lease all the same, and who does not accept claims by itself.
func TestWhoHasLeftIsGivenNothing(t *testing.T) {
	t.Parallel()
	eitherWay(t, whoHasLeftIsGivenNothing)
}

func whoHasLeftIsGivenNothing(t *testing.T, alone bool) {
	b, _ := handing(t, alone)
	w := b.accepting(1)
	w.End()
	asks := b.Wait(waiter)
	b.enqueue(queue.New{Dialect: task.Job, Job: "/topics/a"})
	if leases, woken := given(t, w); len(leases) > 0 || woken {
		t.Errorf("one that had left was given %+v", leases)
	}
	if leases, woken := given(t, asks); len(leases) > 0 || !woken {
		t.Errorf("one that claims by itself was given %+v, woken: %t", leases, woken)
	}
	if next := b.byWaiter(); len(next) != 1 {
		t.Errorf("claimed %+v, want the task", next)
	}
}

// gate is a store whose writes wait while it is closed.
type gate struct {
	store.Store
	opens chan struct{} // nil: it is open
}

func (g *gate) Write(ctx context.Context, w store.Write) error {
	if g.opens != nil {
		<-g.opens
	}
	return g.Store.Write(ctx, w)
}

// Where one write holds a task that is to be started and a more urgent one of another request, the urgent one is started first.
func TestAMoreUrgentTaskOfTheSameWriteIsStartedFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))) // the bubble's time begins in 2000, the engine's in 2026
		b, w := handing(t, true)
		g := &gate{Store: w.Store}
		w.Store = g
		waits := b.accepting(1)
		g.opens = make(chan struct{})
		var group sync.WaitGroup
		for _, n := range []queue.New{{Job: "/strict"}, {Job: "/topics/a", Priority: 1}, {Job: "/topics/a", Priority: 2}} {
			n.Dialect = task.Job
			group.Go(func() {
				if _, err := b.Enqueue(t.Context(), nil, n); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait() // the first is being written, and the others wait for the next write
		}
		before := w.calls.Load()
		close(g.opens)
		group.Wait()
		if n := w.calls.Load() - before; n != 1 {
			t.Errorf("%d writes after the first, want one of both requests", n)
		}
		if leases, woken := given(t, waits); !woken || len(leases) > 0 {
			t.Errorf("woken: %v, with %+v, want to claim by itself", woken, leases)
		}
		if first := b.byWaiter(); len(first) != 1 || first[0].Task.Priority != 2 {
			t.Errorf("%+v was started first, want the urgent one", first)
		}
	})
}
