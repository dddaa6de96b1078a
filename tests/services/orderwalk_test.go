package services_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAnOrdersStepsAreFunctions: the steps of a chain run in the worker's function, which notifications start one by one, and an order's
// events are those of one process: JobScheduler's, in its order.
func TestAnOrdersStepsAreFunctions(t *testing.T) {
	t.Parallel()
	d, target := start(t), receiver(t)
	d.apply(t, fmt.Sprintf(`
jobs:
  - {path: /topics/step, target: {http: {url: %[1]q}}}
job_chains:
  - {path: /aFolder/test-ax, nodes: [{id: A, job: /topics/step}, {id: BB, job: /topics/step}, {id: end}]}
`, target.url))
	d.bridge(t, func() string { return d.urls["worker"] })
	d.ask(t, http.StatusCreated, "tasks", "POST", "/api/v1/orders/%2FaFolder%2Ftest-ax", `{"id":"117","variables":{"n":1}}`, nil)

	var got struct{ EventSnapshots []map[string]any }
	until(t, "the order has finished", func() bool {
		got.EventSnapshots = nil
		d.ask(t, http.StatusOK, "snapshot", "GET", "/jobscheduler/master/api/order/aFolder/?return=Event&after=0", "", &got)
		n := len(got.EventSnapshots)
		return n > 0 && got.EventSnapshots[n-1]["TYPE"] == "OrderFinished"
	})
	const key = "/aFolder/test-ax,117"
	success := map[string]any{"TYPE": "Success"}
	want := []map[string]any{
		{"key": key, "TYPE": "OrderAdded", "nodeId": "A", "version": 1.0, "variables": map[string]any{"n": 1.0}},
		{"key": key, "TYPE": "OrderStarted"},
		{"key": key, "TYPE": "OrderStepStarted", "nodeId": "A"},
		{"key": key, "TYPE": "OrderStepEnded", "nodeTransition": success},
		{"key": key, "TYPE": "OrderNodeChanged", "fromNodeId": "A", "nodeId": "BB"},
		{"key": key, "TYPE": "OrderStepStarted", "nodeId": "BB"},
		{"key": key, "TYPE": "OrderStepEnded", "nodeTransition": success},
		{"key": key, "TYPE": "OrderNodeChanged", "fromNodeId": "BB", "nodeId": "end"},
		{"key": key, "TYPE": "OrderFinished", "nodeId": "end"},
	}
	for _, e := range got.EventSnapshots {
		delete(e, "eventId")
		delete(e, "taskId")
	}
	if diff := cmp.Diff(want, got.EventSnapshots); diff != "" {
		t.Errorf("the order's events (-want +got):\n%s", diff)
	}
	if n := target.starts("/topics/step"); n != 2 {
		t.Errorf("the target was sent %d steps, want 2", n)
	}
	for _, name := range []string{"tasks", "worker", "snapshot"} {
		d.requests[name].Check(t)
	}
}
