package e2e_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/dynamo"
	"github.com/millrace/millrace/shared/store/pebble"
	"github.com/millrace/millrace/shared/task"
	"github.com/millrace/millrace/shared/upgrade"
	"github.com/millrace/millrace/tests/containers"
	"github.com/millrace/millrace/tests/process"
)

const delays = `
handlers:
  - {canvas: c, space: WORKER, name: h, target: {command: [sh, -c, "exec cat >/dev/null"]}}
`

// late is how long after its time a delayed task may start here. On a quiet machine it is well below a second, which the test
// logs; on a busy one the emulator alone takes longer. A task that only the next sweep finds is a minute late.
const late = 30 * time.Second

// TestDelaysFrom1To20Seconds: a delayed task starts at its time, and never before, whether one process keeps the time or
// SQS does.
func TestDelaysFrom1To20Seconds(t *testing.T) {
	t.Parallel()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		delayed(t, serve(t, embedded(t), declared(t, delays)))
	})
	t.Run("DynamoDB and SQS", func(t *testing.T) {
		t.Parallel()
		delayed(t, serve(t, "dynamodb:"+tables(t), declared(t, delays), bySQS(t)))
	})
}

// delayed delays events by 1 to 20 s.
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
	judgeStarts(t, s, due)
}

// TestDelaysBeyondSQS: a task that was delayed for longer than SQS keeps a message starts at its time. It was added by a
// process whose clock is that far behind, and which has ended when the time comes.
func TestDelaysBeyondSQS(t *testing.T) {
	t.Parallel()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		url := embedded(t)
		s, err := pebble.Open(strings.TrimPrefix(url, "pebble:"), pebble.Options{})
		if err != nil {
			t.Fatal(err)
		}
		due := delayedLongAgo(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		judgeStarts(t, serve(t, url, declared(t, delays)), due)
	})
	t.Run("DynamoDB and SQS", func(t *testing.T) {
		t.Parallel()
		prefix, cfg := tables(t), containers.AWS(t)
		s, err := dynamo.Open(t.Context(), dynamo.Options{Prefix: prefix, AWS: &cfg})
		if err != nil {
			t.Fatal(err)
		}
		due := delayedLongAgo(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		judgeStarts(t, serve(t, "dynamodb:"+prefix, declared(t, delays), bySQS(t)), due)
	})
}

// delayedLongAgo delays tasks, each by a process of its own at its time, so that they fall due in some seconds.
func delayedLongAgo(t *testing.T, s store.Store) map[string]time.Time {
	t.Helper()
	if _, err := upgrade.Check(t.Context(), s, journal.ShortRun); err != nil { // as each process does when it starts
		t.Fatal(err)
	}
	set, err := definition.Read("test", []byte(delays))
	if err != nil {
		t.Fatal(err)
	}
	due, first := map[string]time.Time{}, time.Now().Add(12*time.Second).Truncate(time.Microsecond)
	for i, delay := range []time.Duration{400 * 24 * time.Hour, 36 * time.Hour, 40 * time.Minute, 16 * time.Minute, 901 * time.Second} {
		at := first.Add(time.Duration(i) * 700 * time.Millisecond)
		then := at.Add(-delay)
		clock := func() time.Time { return then }
		j := journal.Open(s, journal.Options{Now: clock, Folds: projection.Folds()})
		q := queue.Open(queue.Options{Store: s, Journal: j, Definitions: fixedSet{set}, Now: clock})
		added, err := q.Enqueue(t.Context(), nil, queue.New{Dialect: task.Event, Job: "/canvases/c/WORKER/h", NotBefore: at})
		if err != nil {
			t.Fatal(err)
		}
		due[string(added.Tasks[0].Task.ID)] = at
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return due
}

// judgeStarts judges by the journal when tasks were started: an EventId is a time.
func judgeStarts(t *testing.T, s *process.Server, due map[string]time.Time) {
	t.Helper()
	ready := time.Now() // a machine that is busy is slow to start a server
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var sum, worst time.Duration
	started := 0
	for step, err := range dial(t, s).Follow(ctx, client.Query{Types: []string{"TaskStarted"}}) {
		if err != nil {
			t.Fatalf("%d of %d were started: %v", started, len(due), err)
		}
		for _, e := range step.Events {
			at, ours := due[e.Key.TaskID]
			behind := e.ID.Time().Sub(at)
			if !ours || behind < 0 {
				t.Errorf("task %s, one of these: %t, was started %v early", e.Key.TaskID, ours, -behind)
			}
			if at.Before(ready) {
				behind = max(0, e.ID.Time().Sub(ready))
			}
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

// bySQS configures a server in LocalStack with a queue of its own.
func bySQS(t *testing.T) func(*process.Server) {
	t.Helper()
	return onLocalStack(t, "MILLRACE_BELL=sqs:"+containers.Queue(t))
}
