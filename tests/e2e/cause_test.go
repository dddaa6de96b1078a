package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/tests/process"
)

const failing = `
handlers:
  - {canvas: c, space: WORKER, name: h, target: {command: [sh, -c, "exit 1"]}, attempts: 2, retry_delay: 10ms}
`

// TestCausesOfATask: each event of a task names the one before it, a retry too, on both stores.
func TestCausesOfATask(t *testing.T) {
	t.Parallel()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		causesOfATask(t, serve(t, embedded(t), declared(t, failing)))
	})
	t.Run("DynamoDB and SQS", func(t *testing.T) {
		t.Parallel()
		causesOfATask(t, serve(t, "dynamodb:"+tables(t), declared(t, failing), bySQS(t)))
	})
}

func causesOfATask(t *testing.T, s *process.Server) {
	t.Helper()
	c := dial(t, s)
	if _, err := c.EmitTo(t.Context(), client.HandlerName{Canvas: "c", Space: "WORKER", Name: "h"}, client.NewEvent{Value: json.RawMessage("1")}); err != nil {
		t.Fatal(err)
	}
	want := []string{ // TYPE, who did it, and the TYPE of its cause
		"FileBasedAdded configuration ", "FileBasedActivated configuration FileBasedAdded", "SchedulerStateChanged  ",
		"TaskAdded admin ", "TaskStarted  TaskAdded", "TaskEnded  TaskStarted", "TaskStarted  TaskEnded", "TaskEnded  TaskStarted", "TaskClosed  TaskEnded",
	}
	var got []string
	types, last := map[event.ID]string{}, event.ID(0)
	for step, err := range c.Follow(t.Context(), client.Query{Causes: true, Wait: time.Minute}) {
		if err != nil || len(step.Events) == 0 {
			t.Fatalf("after %q: %+v, %v", got, step, err)
		}
		for _, e := range step.Events {
			types[e.ID], last = e.Type, e.ID
			got = append(got, strings.Join([]string{e.Type, e.By, types[e.Cause.ID()]}, " "))
		}
		if strings.HasPrefix(got[len(got)-1], event.TaskClosed) {
			break
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	printed := command(t, environment(s), "", "follow", "--cause", "--after", fmt.Sprint(last-1), "--count", "1")
	if !strings.Contains(printed.out, "cause=") {
		t.Errorf("follow --cause prints %q, want the cause", printed.out)
	}
}
