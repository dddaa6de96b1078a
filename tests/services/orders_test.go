package services_test

import (
	"fmt"
	"net/http"
	"testing"
)

// TestOrdersGoOnWithoutTheSweep: an order that waits for an event goes on soon after it, and an act on many is done soon: the function
// that wrote the event or began the act wakes a worker. No function is called by a clock.
func TestOrdersGoOnWithoutTheSweep(t *testing.T) {
	t.Parallel()
	d, target := start(t), receiver(t)
	d.declare(t, target.url)
	d.bridge(t, func() string { return d.urls["worker"] })
	for n := range 12 {
		d.ask(t, http.StatusCreated, "tasks", "POST", "/api/v1/orders/%2Fparcels", fmt.Sprintf(`{"id":"%d"}`, n), nil)
	}
	d.ask(t, http.StatusCreated, "emit", "POST", "/jobscheduler/master/api/event", `[{"TYPE":"ParcelArrived","key":"/p"}]`, nil)
	until(t, "the orders have gone on", func() bool { return target.starts("/topics/clock") == 12 })

	for n := range 3 {
		d.ask(t, http.StatusCreated, "tasks", "POST", "/api/v1/orders/%2Fparcels", fmt.Sprintf(`{"id":"again %d"}`, n), nil)
	}
	var act struct {
		ID    string
		State string
		Done  int
	}
	d.ask(t, http.StatusAccepted, "tasks", "POST", "/api/v1/orders:act", `{"act":"suspend","filter":{"path":"/parcels","node":"wait"}}`, &act)
	until(t, "the act on many is done", func() bool {
		d.ask(t, http.StatusOK, "tasks", "GET", "/api/v1/acts/"+act.ID, "", &act)
		return act.State == "done" && act.Done == 3
	})
	for _, name := range []string{"emit", "tasks", "worker"} {
		d.requests[name].Check(t)
	}
}
