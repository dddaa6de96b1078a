package services_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestABacklogWithoutNotices: tasks whose notifications were all lost are worked off after one sweep, at the pace of the
// store, though the sweep notifies of sixteen at most.
func TestABacklogWithoutNotices(t *testing.T) {
	t.Parallel()
	const n = 100
	d, target := start(t), receiver(t)
	d.declare(t, target.url)
	var notices atomic.Int64
	d.bridge(t, func() (worker string) {
		if notices.Add(1) <= n {
			return "http://127.0.0.1:1" // nothing listens there
		}
		return d.urls["worker"]
	})
	for from := 0; from < n; from += 20 {
		var values []string
		for i := range 20 {
			values = append(values, fmt.Sprintf(`{"value":%d}`, from+i))
		}
		var made []json.RawMessage
		d.ask(t, http.StatusAccepted, "enqueue-task", "POST", "/api/v1/canvases/c/handlers/S/later/events:batch", "["+strings.Join(values, ",")+"]", &made)
		if len(made) != 20 {
			t.Fatalf("%d tasks were made, want 20", len(made))
		}
	}
	until(t, "all notices are lost", func() bool { return notices.Load() >= n })
	if got := target.starts("/canvases/c/S/later"); got != 0 {
		t.Fatalf("%d tasks were started without notices", got)
	}
	began := time.Now()
	d.tick(t, "sweep")
	until(t, "all tasks are started", func() bool { return target.starts("/canvases/c/S/later") >= n })
	t.Logf("%d tasks after one sweep: %v, with %d notices", n, time.Since(began), notices.Load()-n)
	if got := target.starts("/canvases/c/S/later"); got != n {
		t.Errorf("%d starts, want %d", got, n)
	}
	d.requests["worker"].Check(t)
}

// until waits for something that other processes do.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); !is(); time.Sleep(50 * time.Millisecond) { // there is nothing to wait on
		if time.Now().After(end) {
			t.Fatalf("not within 5 minutes: %s", what)
		}
	}
}
