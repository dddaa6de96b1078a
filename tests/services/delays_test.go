package services_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/task"
)

// fixed is a set of definitions that does not change.
type fixed struct{ set *definition.Set }

func (f fixed) Current(context.Context) (*definition.Set, error) { return f.set, nil }

// TestDelays: tasks that were delayed by 1 to 20 s start at their time, by the request's notification; and tasks that were delayed
// long ago, by up to 400 days, by that of one tick of cron.
func TestDelays(t *testing.T) {
	t.Parallel()
	d, target := start(t), receiver(t)
	d.declare(t, target.url)
	d.bridge(t, func() string { return d.urls["worker"] })
	j := journal.Open(d.store, journal.Options{Folds: projection.Folds()})
	t.Cleanup(func() { _ = j.Close() })

	first := time.Now().Add(20 * time.Second).Truncate(time.Microsecond)
	due := map[string]time.Time{}
	for i, delay := range []time.Duration{400 * 24 * time.Hour, 36 * time.Hour, 40 * time.Minute, 901 * time.Second} {
		at := first.Add(time.Duration(i) * 700 * time.Millisecond)
		due[d.delayedLongAgo(t, at, delay)] = at
	}
	d.tick(t, "cron")
	for seconds := 1.0; seconds <= 20; seconds += 1.9 { // not on a second's boundary only
		at := time.Now().Add(time.Duration(seconds * float64(time.Second))).Truncate(time.Microsecond)
		id := d.make(t, http.StatusAccepted, "/api/v1/canvases/c/handlers/S/later/events", fmt.Sprintf(`{"value":2,"delay_until":%q}`, at.UTC().Format(time.RFC3339Nano)))
		due[id] = at
	}
	judgeStarts(t, j, due)
}

// delayedLongAgo delays an event by a process whose clock is as far behind. Its handler ran on instances then.
func (d *deployment) delayedLongAgo(t *testing.T, at time.Time, delay time.Duration) (id string) {
	t.Helper()
	clock := func() time.Time { return at.Add(-delay) }
	j := journal.Open(d.store, journal.Options{Now: clock, Folds: projection.Folds()})
	defer func() { _ = j.Close() }()
	set := &definition.Set{Handlers: []definition.Handler{{Canvas: "c", Space: "S", Name: "later"}}}
	q := queue.Open(queue.Options{Store: d.store, Journal: j, Definitions: fixed{set}, Now: clock})
	added, err := q.Enqueue(t.Context(), nil, queue.New{Dialect: task.Event, Job: "/canvases/c/S/later", NotBefore: at})
	if err != nil {
		t.Fatal(err)
	}
	return string(added.Tasks[0].Task.ID)
}

// judgeStarts judges by the journal when tasks were started: an EventId is a time. How late they were depends on the machine, and is
// logged only; a task without a notification is not started at all.
func judgeStarts(t *testing.T, j *journal.Journal, due map[string]time.Time) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var sum, worst time.Duration
	var after event.ID
	waiting := maps.Clone(due)
	for started := 0; started < len(due); {
		answer, err := j.ReadAfter(ctx, journal.Request{
			After: after, Timeout: time.Minute, Limit: 100, Match: func(e *event.Event) bool { return e.Type == "TaskStarted" },
		})
		if err != nil {
			t.Fatalf("%d of %d were started, not %v: %v", started, len(due), waiting, err)
		}
		after = answer.LastEventID
		for _, e := range answer.Events {
			at, ours := due[e.Key.TaskID]
			delete(waiting, e.Key.TaskID)
			behind := e.ID.Time().Sub(at)
			if !ours || behind < 0 {
				t.Errorf("task %s, one of these: %t, was started %v early", e.Key.TaskID, ours, -behind)
			}
			sum, worst, started = sum+behind, max(worst, behind), started+1
		}
	}
	t.Logf("%d delayed tasks started %v late on average, %v at most", len(due), sum/time.Duration(len(due)), worst)
}
