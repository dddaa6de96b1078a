package queue_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/tasklog"
	"github.com/millrace/millrace/shared/task"
)

// late completes a task as a server does for a remote worker, and returns the messages of the task's log and the error.
func (b *bench) late(l queue.Lease, outcome queue.Outcome) (log []string, refused error) {
	b.t.Helper()
	_, refused = b.Complete(b.t.Context(), l.Token, queue.Result{Outcome: outcome})
	if errors.Is(refused, queue.ErrStale) {
		if err := b.Refused(b.t.Context(), l.Token, outcome); err != nil {
			b.t.Fatal(err)
		}
	}
	page, err := b.Logs(b.t.Context(), l.Task.ID, tasklog.Query{})
	if err != nil && !errors.Is(err, queue.ErrNoTask) {
		b.t.Fatal(err)
	}
	for _, line := range page.Lines {
		log = append(log, line.Level+": "+line.Message)
	}
	return log, refused
}

// A worker that was cut off completes its task after its lease has ended, whatever has become of the task since. The result is
// refused, changes nothing, and the task's log says so, once.
func TestALateResultIsRefusedAndTold(t *testing.T) {
	t.Parallel()
	const line = "warn: a result (ok) of attempt 1 came when its lease was over, and was refused"
	const lost = "error: the lease ran out: its worker was not heard of for 30s"
	again := func(b *bench) queue.Lease {
		b.clock.advance(time.Minute)
		return b.claim(1)[0]
	}
	for name, c := range map[string]struct {
		topic     string
		attempts  int
		meanwhile func(b *bench)
		state     task.State // "": the task is gone
		log       []string
	}{
		"it waits for the next attempt": {"kept", 3, func(*bench) {}, task.Waiting, []string{line}},
		"the next attempt runs":         {"kept", 3, func(b *bench) { again(b) }, task.Running, []string{line}},
		"the next attempt has failed": {"kept", 3, func(b *bench) { b.end(again(b), queue.Result{Outcome: queue.Failed}) },
			task.Waiting, []string{line}},
		"the next attempt has logged and succeeded": {"kept", 3, func(b *bench) {
			next := again(b)
			if err := b.AppendLog(b.t.Context(), next.Token, []tasklog.Line{{Message: "second"}}); err != nil {
				b.t.Fatal(err)
			}
			b.end(next, queue.Result{Outcome: queue.OK})
		}, task.Succeeded, []string{line, "info: second"}},
		"it was the last attempt": {"kept", 1, func(*bench) {}, task.Failed, []string{lost, line}},
		"it has left no history":  {"gone", 3, func(b *bench) { b.end(again(b), queue.Result{Outcome: queue.OK}) }, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := topics(t, []string{"kept", "gone"}, definition.Queue{Name: "k", Topics: []string{"kept"}, KeepJobs: true})
			id := b.add(c.topic, func(n *queue.New) { n.Attempts = c.attempts })
			first := b.claim(1)[0]
			b.clock.advance(first.Length)
			if s, err := b.Sweep(t.Context()); err != nil || s.Lost != 1 {
				t.Fatalf("Sweep = %+v, %v, want a lost lease", s, err)
			}
			c.meanwhile(b)
			before := b.events(id)
			for range 2 {
				log, refused := b.late(first, queue.OK)
				if !errors.Is(refused, queue.ErrStale) {
					t.Errorf("Complete = %v, want %v", refused, queue.ErrStale)
				}
				if diff := cmp.Diff(c.log, log); diff != "" {
					t.Errorf("log (-want +got):\n%s", diff)
				}
			}
			if diff := cmp.Diff(before, b.events(id)); diff != "" {
				t.Errorf("events before and after the late result:\n%s", diff)
			}
			if got, err := b.Get(t.Context(), id); got.State != c.state || (err != nil) != (c.state == "") {
				t.Errorf("Get = %q, %v, want %q", got.State, err, c.state)
			}
		})
	}
}

// A result whose response was lost is sent again. It is not a late one.
func TestARepeatedResultIsNoLateOne(t *testing.T) {
	t.Parallel()
	b := topics(t, []string{"a"})
	b.add("a", func(n *queue.New) { n.Attempts = 2 })
	l := b.claim(1)[0]
	b.end(l, queue.Result{Outcome: queue.Failed})
	if log, refused := b.late(l, queue.Failed); !errors.Is(refused, queue.ErrStale) || log != nil {
		t.Errorf("a result told twice: %v, log %q, want it refused and nothing noted", refused, log)
	}
}
