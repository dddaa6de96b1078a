package e2e_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/tests/containers"
	"github.com/millrace/millrace/tests/process"
)

const shared = `
handlers:
  - {canvas: c, space: WORKER, name: h, target: {command: [sleep, "0.3"]}}
`

// TestTwoServersShareTheWork: servers on one store notify each other by way of SQS, so that tasks of one of them run on
// both, at once and, where they are delayed, at their time.
func TestTwoServersShareTheWork(t *testing.T) {
	t.Parallel()
	prefix, queue := tables(t), containers.Queue(t)
	on := onLocalStack(t, "MILLRACE_BELL=sqs:"+queue, "MILLRACE_WORKERS=2")
	twoShare(t, "dynamodb:"+prefix, on)
}

// twoShare has two servers on one store run tasks that one of them is given.
func twoShare(t *testing.T, store string, on func(*process.Server)) {
	t.Helper()
	first := serve(t, store, on, declared(t, shared))
	serve(t, store, on, declared(t, shared))
	c, handler := dial(t, first), client.HandlerName{Canvas: "c", Space: "WORKER", Name: "h"}

	const many = 16
	for n := range many {
		if _, err := c.EmitTo(t.Context(), handler, client.NewEvent{Value: json.RawMessage("1")}); err != nil {
			t.Fatalf("EmitTo, event %d = %v", n, err)
		}
	}
	due := time.Now().Add(5 * time.Second)
	if _, err := c.EmitTo(t.Context(), handler, client.NewEvent{Value: json.RawMessage("2"), DelayUntil: due}); err != nil {
		t.Fatalf("EmitTo, delayed = %v", err)
	}

	ran, done := map[string]int{}, 0
	eventually(t, "all events are done", func() bool {
		clear(ran)
		done = 0
		for e, err := range c.HandlerEvents(t.Context(), handler, "done", 0) {
			if err != nil {
				t.Fatal(err)
			}
			ran[e.DequeuedBy]++
			done++
			if early := due.Sub(e.LastProcessedAt.Time); string(e.Value) == "2" && early > 0 {
				t.Errorf("the delayed event was done %v before its time", early)
			}
		}
		return done == many+1
	})
	if len(ran) != 2 {
		t.Errorf("events by server: %v, want some on each of two", ran)
	}
}
