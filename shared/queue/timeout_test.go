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
