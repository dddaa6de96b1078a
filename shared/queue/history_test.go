package queue_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/overview"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store/meter"
	"github.com/millrace/millrace/shared/task"
)

// remembering is an engine that keeps the history of topics for some time, alone or over a store that others share.
func remembering(t *testing.T, alone bool, history time.Duration) (*bench, *meter.Meter) {
	t.Helper()
	d := server("a", "b", "kept/a")
	d.Queues = []definition.Queue{{Name: "kept", Topics: []string{"kept/*"}, KeepJobs: true}}
	b := setupWith(t, d)
	if !alone {
		b.store = shared{b.store}
	}
	m := meter.New(b.store)
	b.store = m
	b.journal = journal.Open(m, journal.Options{Now: b.clock.now, Folds: overview.Folds()})
	b.Queue = queue.Open(queue.Options{Store: m, Journal: b.journal, Definitions: fixed{d}, Now: b.clock.now, History: history})
	t.Cleanup(func() { _ = b.journal.Close() })
	return b, m
}

// sweeps sweeps once a minute, and answers how many tasks left the history.
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
	return b.list(queue.JobListing{History: true, States: everyEnd, Limit: 1000})
}

// What was finished for longer than the history is kept goes, whatever it has come to, with its payload and its log; what
// runs, waits, was finished later, or holds its unique key still, stays.
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
			if _, err := b.Heartbeat(t.Context(), l.Token, queue.Beat{Lines: []queue.Line{{Message: "x"}}}); err != nil {
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
		if diff := cmp.Diff([]task.ID{waiting}, b.list(queue.JobListing{States: unfinished})); diff != "" {
			t.Errorf("unfinished (-want +got):\n%s", diff)
		}
	})
}

// A sweep removes a thousand at most, and one that has nothing to remove reads once.
func TestHistoryIsCleanedInBounds(t *testing.T) {
	t.Parallel()
	b, m := remembering(t, false, time.Hour)
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
	if most := b.sweeps(16); most != 1000 {
		t.Errorf("%d left the history in the first round, want 1000", most)
	}
	if rest := b.sweeps(32); rest != 1400 {
		t.Errorf("%d left the history afterwards, want 1400", rest)
	}
	m.Reset()
	b.sweeps(1)
	with := m.Reset().Total().Calls
	b, m = remembering(t, false, 0)
	b.add("a")
	b.sweeps(1)
	m.Reset()
	b.sweeps(1)
	if without := m.Reset().Total().Calls; with > without+1 {
		t.Errorf("a sweep with nothing to remove makes %d calls, and %d without an age", with, without)
	}
}
