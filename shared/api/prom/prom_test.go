package prom_test

import (
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/api/prom"
	"github.com/millrace/millrace/shared/metric"
)

var _ api.Metrics = (*prom.Metrics)(nil)

func TestMetrics(t *testing.T) {
	t.Parallel()
	m := prom.New("pebble:data")
	m.Request("GET /a", 200, 3*time.Millisecond)
	m.Outcome("emit", "appended", 5)
	m.Outcome("read", "empty", 0)
	m.Following(+1)
	m.Clock(func() time.Duration { return -1500 * time.Millisecond })
	m.Gauge(metric.OldestWait, func() float64 { return 1.5 })
	m.Gauge(metric.DueLag, func() float64 { return 0 })
	m.Counter(metric.LeasesLost, func() float64 { return 2 })
	m.Counter(metric.Misfires, func() float64 { return 0 })
	m.Calls(func() map[string]int64 { return map[string]int64{"get": 3, "write": 4} })
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	body, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		`millrace_http_request_duration_seconds_count{route="GET /a",status="200",store="pebble:data"} 1`,
		`millrace_http_request_duration_seconds_bucket{route="GET /a",status="200",store="pebble:data",le="0.005"} 1`,
		`millrace_operations_total{operation="emit",outcome="appended",store="pebble:data"} 1`,
		`millrace_operations_total{operation="read",outcome="empty",store="pebble:data"} 1`,
		`millrace_events_total{operation="emit",store="pebble:data"} 5`,
		`millrace_followers{store="pebble:data"} 1`,
		`millrace_clock_offset_seconds{store="pebble:data"} -1.5`,
		`millrace_oldest_wait_seconds{store="pebble:data"} 1.5`,
		`millrace_leases_lost_total{store="pebble:data"} 2`,
		`millrace_store_calls_total{method="get",store="pebble:data"} 3`,
		`millrace_store_calls_total{method="write",store="pebble:data"} 4`,
		`# TYPE go_gc_heap_live_bytes gauge`,
	} {
		if !strings.Contains(string(body), line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
	for _, x := range metric.All() {
		if !strings.Contains(string(body), "# HELP "+x.Name+" "+x.Help+"\n") {
			t.Errorf("%s is not there", x.Name)
		}
	}
}
