package queue_test

import (
	"testing"

	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/task"
)

// A process goes by what others have made of a task that it has added.
func TestWhatOthersHaveMadeOfATaskSinceItWasAdded(t *testing.T) {
	t.Parallel()
	adds := setupWith(t, ways()).another()
	other := adds.another()
	plain := queue.New{Dialect: task.Job, Job: "/plain", Attempts: 3, Payload: []byte(`"x"`)}
	adds.enqueue(plain)
	other.complete(other.claim(1)[0], queue.Result{Outcome: queue.Thrown})
	if l := adds.claim(1)[0]; l.Task.Attempt != 2 {
		t.Errorf("attempt %d of a task that another process has run once, want 2", l.Task.Attempt)
	}
	gone := adds.enqueue(plain)[0].Task.ID
	if _, err := other.Stop(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	adds.demandClaim(1, 0, "it was stopped by another process")
}
