package queue_test

import (
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/task"
)

// A worker that goes on sending heartbeats keeps its lease for its job's timeout, a day if none is given, and one length of the lease
// more. Then the attempt has failed, and the next worker gets the task.
func TestHeartbeatsEndWithTheTimeout(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.enqueue(queue.New{Dialect: task.Job, Job: "/strict"})[0].Task.ID
	began := b.clock.now()
	lease := b.claim(1)[0]
	end := began.Add(definition.DefaultTimeout + definition.DefaultLease)
	why, err := b.Why(t.Context(), id)
	if err != nil || why.Details["timeout_at"] != began.Add(definition.DefaultTimeout).UTC() {
		t.Errorf("timeout_at = %v, %v, want a day after the start", why.Details["timeout_at"], err)
	}
	var alive queue.Alive
	for !b.clock.now().Add(definition.DefaultLease - time.Second).After(end) {
		b.clock.advance(definition.DefaultLease - time.Second)
		if alive, err = b.Heartbeat(t.Context(), lease.Token, queue.Beat{}); err != nil {
			t.Fatalf("after %v: %v", b.clock.now().Sub(began), err)
		}
		if late := b.clock.now().Sub(began) >= definition.DefaultTimeout; alive.Stop != late {
			t.Errorf("after %v: stop = %t, want %t", b.clock.now().Sub(began), alive.Stop, late)
		}
		if _, err := b.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if !alive.Expires.Equal(end) {
		t.Errorf("the last lease runs until %v, want %v", alive.Expires, end)
	}
	b.clock.advance(definition.DefaultLease)
	if _, err := b.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := b.Get(t.Context(), id)
	if err != nil || got.State != task.Waiting || !strings.Contains(got.Message, "longer than the 24h0m0s allowed") {
		t.Errorf("Get = %s, %q, %v, want that it took too long and waits for its next attempt", got.State, got.Message, err)
	}
}

// How a worker that has to stop at the timeout ends its attempt: any result but a success is a failure, which is tried again.
func TestAnswersToTheTimeout(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		outcome queue.Outcome
		asked   bool // to stop, too
		beats   bool // after the timeout, and so is told to stop
		state   task.State
		message string
	}{
		"ok":                    {queue.OK, false, true, task.Succeeded, ""},
		"failed":                {queue.Failed, false, true, task.Waiting, "said"},
		"cancel":                {queue.Cancel, false, true, task.Waiting, "it took longer than the 1s allowed: said"},
		"cancel of one to stop": {queue.Cancel, true, true, task.Stopped, "said"},
		"cancel by itself":      {queue.Cancel, false, false, task.Rejected, "said"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			id := b.enqueue(queue.New{Dialect: task.Job, Job: "/timed", Attempts: 2, RetryDelay: time.Minute})[0].Task.ID
			lease := b.claim(1)[0]
			if want := b.clock.now().Add(time.Second); !lease.Deadline.Equal(want) {
				t.Errorf("the deadline is %v, want %v", lease.Deadline, want)
			}
			b.clock.advance(time.Second)
			if test.asked {
				if _, err := b.Stop(t.Context(), id); err != nil {
					t.Fatal(err)
				}
			}
			if test.beats {
				if alive, err := b.Heartbeat(t.Context(), lease.Token, queue.Beat{}); err != nil || !alive.Stop {
					t.Errorf("Heartbeat = %+v, %v, want a stop", alive, err)
				}
			}
			state, err := b.Complete(t.Context(), lease.Token, queue.Result{Outcome: test.outcome, Message: "said"})
			if err != nil || state != test.state {
				t.Fatalf("Complete = %s, %v, want %s", state, err, test.state)
			}
			if got, err := b.Get(t.Context(), id); test.message != "" && (err != nil || got.Message != test.message) {
				t.Errorf("Get = %q, %v, want %q", got.Message, err, test.message)
			}
		})
	}
}
