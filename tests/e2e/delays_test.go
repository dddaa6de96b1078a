package e2e_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/tests/containers"
	"github.com/millrace/millrace/tests/process"
)

const delays = `
handlers:
  - {canvas: c, space: WORKER, name: h, target: {command: [sh, -c, "exec cat >/dev/null"]}}
`

// late is how long after its time a delayed task may start here: a second on a quiet machine, and what a busy one takes.
const late = 3 * time.Second

// TestDelaysFrom1To20Seconds: what is delayed starts at its time, and never before, whether one process keeps the time or
// SQS does.
func TestDelaysFrom1To20Seconds(t *testing.T) {
	t.Parallel()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		delayed(t, serve(t, embedded(t), declared(t, delays)))
	})
	t.Run("DynamoDB and SQS", func(t *testing.T) {
		t.Parallel()
		delayed(t, serve(t, "dynamodb:"+tables(t), declared(t, delays), func(s *process.Server) {
			s.Env = append(s.Env, "AWS_ENDPOINT_URL="+containers.LocalStack(t), "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=test",
				"AWS_SECRET_ACCESS_KEY=test", "MILLRACE_BELL=sqs:"+containers.Queue(t))
		}))
	})
}

// delayed delays events by 1 to 20 s, and judges by the journal when they were started: an EventId is a time.
func delayed(t *testing.T, s *process.Server) {
	t.Helper()
	c := dial(t, s)
	due := map[string]time.Time{}
	for seconds := 1.0; seconds <= 20; seconds += 0.7 { // not on a second's boundary only
		at := time.Now().Add(time.Duration(seconds * float64(time.Second))).Truncate(time.Microsecond)
		e, err := c.EmitTo(t.Context(), client.HandlerName{Canvas: "c", Space: "WORKER", Name: "h"}, client.NewEvent{Value: json.RawMessage("1"), DelayUntil: at})
		if err != nil {
			t.Fatal(err)
		}
		due[e.ID] = at
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var sum, worst time.Duration
	started := 0
	for step, err := range c.Follow(ctx, client.Query{Types: []string{"TaskStarted"}}) {
		if err != nil {
			t.Fatalf("%d of %d were started: %v", started, len(due), err)
		}
		for _, e := range step.Events {
			behind := lateness(t, &e, due)
			sum, worst, started = sum+behind, max(worst, behind), started+1
		}
		if started == len(due) {
			break
		}
	}
	t.Logf("%d delayed tasks started %v late on average, %v at most", started, sum/time.Duration(started), worst)
	if worst > late {
		t.Errorf("a task was started %v late, want %v at most", worst, late)
	}
}

// lateness answers how late a task was started.
func lateness(t *testing.T, e *event.Event, due map[string]time.Time) time.Duration {
	t.Helper()
	at, ours := due[e.Key.TaskID]
	behind := e.ID.Time().Sub(at)
	if !ours || behind < 0 {
		t.Errorf("task %s, one of these: %t, was started %v early", e.Key.TaskID, ours, -behind)
	}
	return behind
}
