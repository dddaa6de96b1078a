package queue_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/tasklog"
	"github.com/millrace/millrace/shared/queue/view"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/store/meter"
	"github.com/millrace/millrace/shared/task"
)

// remembering is an engine that keeps the history for some time, on a store of its own or a shared one.
func remembering(t *testing.T, alone bool, history time.Duration) (*bench, *meter.Meter) {
	t.Helper()
	b, m, _ := rememberingSlowly(t, alone, history)
	return b, m
}

// rememberingSlowly is remembering with the store whose writes may be made slow.
func rememberingSlowly(t *testing.T, alone bool, history time.Duration) (*bench, *meter.Meter, *lengthy) {
	t.Helper()
	d := server("a", "b", "kept/a")
	d.Queues = []definition.Queue{{Name: "kept", Topics: []string{"kept/*"}, KeepJobs: true}}
	run := definition.Target{Go: "f"}
	d.Jobs = append(d.Jobs, definition.Job{Path: "/folder/job", Target: run})
	d.Sources = map[string]definition.Source{"S": {Target: run, Collections: []definition.Collection{{Name: "C"}}}}
	d.Handlers = []definition.Handler{{Canvas: "c", Space: "W", Name: "h", Target: run}}
	b := setupWith(t, d)
	if !alone {
		b.store = shared{b.store}
	}
	slow := &lengthy{Store: b.store, clock: b.clock}
	m := meter.New(slow)
	b.store = m
	b.journal = journal.Open(m, journal.Options{Now: b.clock.now, Folds: projection.Folds()})
	b.Queue = queue.Open(queue.Options{Store: m, Journal: b.journal, Definitions: fixed{d}, Now: b.clock.now, History: history})
	t.Cleanup(func() { _ = b.journal.Close() })
	return b, m, slow
}

// lengthy is a store whose writes take some time.
type lengthy struct {
	store.Store
	clock *clock
	takes time.Duration
}

func (s *lengthy) Write(ctx context.Context, w store.Write) error {
	s.clock.advance(s.takes)
	return s.Store.Write(ctx, w)
}

// sweeps sweeps once a minute, and returns how many tasks left the history.
func (b *bench) sweeps(minutes int) (removed int) {
	b.t.Helper()
	for range minutes {
		b.clock.advance(time.Minute)
		s, err := b.Sweep(b.t.Context())
		if err != nil {
			b.t.Fatal(err)
		}
		removed += s.Removed
	}
	return removed
}

var everyEnd = []task.State{task.Succeeded, task.Failed, task.Rejected, task.Stopped, task.Dropped, task.Missing}

func (b *bench) history() []task.ID {
	b.t.Helper()
	return b.list(view.JobListing{History: true, States: everyEnd, Limit: 1000})
}

// Tasks that finished longer ago than the history is kept are removed, whatever their state, with their payloads and logs; tasks
// that run, wait, finished later, or still hold their unique key stay.
func TestHistoryIsKeptForItsAge(t *testing.T) {
	t.Parallel()
	eitherWay(t, func(t *testing.T, alone bool) {
		b, _ := remembering(t, alone, time.Hour)
		large := func(n *queue.New) { n.Payload = []byte(`"` + strings.Repeat("x", 1000) + `"`) }
		dropped, rejected, kept := b.add("a", large), b.add("b"), b.add("kept/a")
		window := b.add("b", func(n *queue.New) { n.Unique, n.UniqueWindow = "u", 3*time.Hour })
		if err := b.Remove(t.Context(), dropped); err != nil {
			t.Fatal(err)
		}
		for _, l := range b.claim(10) {
			if _, err := b.Heartbeat(t.Context(), l.Token, queue.Beat{Lines: []tasklog.Line{{Message: "x"}}}); err != nil {
				t.Fatal(err)
			}
			outcome := map[task.ID]queue.Outcome{rejected: queue.Cancel, kept: queue.OK, window: queue.OK}[l.Task.ID]
			b.end(l, queue.Result{Outcome: outcome})
		}
		if n := b.sweeps(59); n != 0 {
			t.Errorf("%d left the history before their time", n)
		}
		waiting, late := b.add("a", func(n *queue.New) { n.NotBefore = b.clock.now().Add(24 * time.Hour) }), b.add("b")
		if err := b.Remove(t.Context(), late); err != nil {
			t.Fatal(err)
		}
		if n := b.sweeps(17); n != 3 {
			t.Errorf("%d left the history, want 3", n)
		}
		if diff := cmp.Diff([]task.ID{late, window}, b.history()); diff != "" {
			t.Errorf("history (-want +got):\n%s", diff)
		}
		if n := b.items("payload/"+dropped.UUID()) + b.items("log/"+rejected.UUID()) + b.items("log/"+kept.UUID()); n != 0 {
			t.Errorf("%d items of what is gone are left", n)
		}
		if told := b.events(rejected); told[len(told)-1] != "TaskRemoved" {
			t.Errorf("events = %v, want TaskRemoved at the end", told)
		}
		if n := b.sweeps(200); n != 2 || len(b.history()) != 0 {
			t.Errorf("%d left the history, want 2, and none to stay", n)
		}
		if diff := cmp.Diff([]task.ID{waiting}, b.list(view.JobListing{States: unfinished})); diff != "" {
			t.Errorf("unfinished (-want +got):\n%s", diff)
		}
	})
}

// Tasks of other jobs leave their lists and the counts at the same age, however many old tasks wait before them.
func TestListsAreKeptForTheHistorysAge(t *testing.T) {
	t.Parallel()
	eitherWay(t, func(t *testing.T, alone bool) {
		b, _ := remembering(t, alone, time.Hour)
		event := func(name string) queue.New {
			return queue.New{Dialect: task.Event, Job: "/canvases/c/W/" + name, Queue: definition.EventQueue, Missing: name == "nobody"}
		}
		waiting := make([]queue.New, 20)
		for range 55 {
			for i := range waiting {
				waiting[i] = event("h")
				waiting[i].NotBefore = b.clock.now().Add(400 * 24 * time.Hour)
			}
			b.enqueue(waiting...)
		}
		gone := []task.ID{b.enqueue(event("nobody"))[0].Task.ID}
		b.enqueue(event("h"), queue.SyncTask("S", "C", 300), queue.New{Dialect: task.Job, Job: "/folder/job"})
		for _, l := range b.claim(10) {
			b.end(l, queue.Result{Outcome: queue.OK})
			gone = append(gone, l.Task.ID)
		}
		if n := b.sweeps(59); n != 0 || len(gone) != 4 {
			t.Errorf("%d of %d left their lists before their time", n, len(gone))
		}
		fresh := b.enqueue(event("nobody"))[0].Task.ID
		if n := b.sweeps(2 * 17); n != len(gone) { // the second round looks behind those that wait
			t.Errorf("%d left their lists, want %d", n, len(gone))
		}
		for _, id := range gone {
			if _, err := b.Get(t.Context(), id); !errors.Is(err, queue.ErrNoTask) {
				t.Errorf("Get(%s) = %v, want ErrNoTask", id, err)
			}
		}
		if _, err := b.Get(t.Context(), fresh); err != nil {
			t.Errorf("Get of what was finished later = %v", err)
		}
		counts, err := b.Counts(t.Context(), "/")
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]map[task.State]int64{
			"/canvases/c/W/h": {task.Waiting: 1100, task.Ready: 0}, "/canvases/c/W/nobody": {task.Missing: 1, task.Ready: 0, task.Waiting: 0},
			"/sources/S/C": {task.Ready: 0, task.Waiting: 0}, "/folder/job": {task.Ready: 0, task.Waiting: 0},
		}
		if diff := cmp.Diff(want, counts); diff != "" {
			t.Errorf("counts (-want +got):\n%s", diff)
		}
	})
}

// A sweep removes all that is old, unless that takes long: then the next ones go on. One without a task to remove reads once, and takes a
// snapshot.
func TestHistoryIsCleanedInBounds(t *testing.T) {
	t.Parallel()
	for takes, want := range map[time.Duration][]int{0: {2400}, 200 * time.Millisecond: {1000, 1000, 400}} {
		t.Run(takes.String(), func(t *testing.T) {
			t.Parallel()
			cleanedInBounds(t, takes, want)
		})
	}
}

func cleanedInBounds(t *testing.T, takes time.Duration, want []int) {
	b, m, slow := rememberingSlowly(t, false, time.Hour)
	for range 120 {
		news := make([]queue.New, 20)
		for i := range news {
			news[i] = queue.New{Dialect: task.Job, Job: "/topics/a", Payload: fmt.Appendf(nil, "%d", i)}
		}
		b.enqueue(news...)
	}
	if n, err := b.Purge(t.Context(), "main"); n != 2400 || err != nil {
		t.Fatalf("Purge = %d, %v", n, err)
	}
	b.clock.advance(2 * time.Hour)
	slow.takes = takes
	var left []int
	for range 18 {
		if n := b.sweeps(1); n > 0 {
			left = append(left, n)
		}
	}
	if diff := cmp.Diff(want, left); diff != "" {
		t.Errorf("sweeps removed (-want +got):\n%s", diff)
	}
	m.Reset()
	b.sweeps(1)
	with := m.Reset().Total().Calls
	b, m = remembering(t, false, 0)
	b.add("a")
	b.sweeps(1)
	m.Reset()
	b.sweeps(1)
	if without := m.Reset().Total().Calls; with > without+2 {
		t.Errorf("a sweep with nothing to remove makes %d calls, and %d without an age", with, without)
	}
}

// A process that has its store to itself cleans the history as fast as it grows.
func TestRunCleansTheHistory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := memory.New(memory.Options{})
		j := journal.Open(s, journal.Options{Folds: projection.Folds()})
		defer func() { _ = j.Close() }()
		q := queue.Open(queue.Options{Store: s, Journal: j, Definitions: fixed{server()}, History: time.Hour})
		missing := make([]queue.New, 20)
		for i := range missing {
			missing[i] = queue.New{Dialect: task.Event, Job: "/canvases/c/W/nobody", Queue: definition.EventQueue, Missing: true}
		}
		for range 150 {
			if _, err := q.Enqueue(t.Context(), nil, missing...); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { q.Run(ctx); close(done) }()
		left := func() int {
			synctest.Wait()
			page, err := q.List(t.Context(), view.Listing{Group: "/canvases/c/W/nobody", Limit: 1000})
			if err != nil {
				t.Fatal(err)
			}
			return len(page.Tasks)
		}
		time.Sleep(59 * time.Minute) // of virtual time
		if n := left(); n != 1000 {
			t.Errorf("%d of 1000 events are there before their time", n)
		}
		time.Sleep(18 * time.Minute) // of virtual time
		if n := left(); n != 0 {
			t.Errorf("%d events are there after their time", n)
		}
		cancel()
		<-done
	})
}
