package host_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/host"
	"github.com/millrace/millrace/shared/metric"
)

func TestEmbeddedMetrics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		m := host.NewEmbeddedMetrics(&out, "dynamodb:millrace")
		m.Request("POST /event", 201, 1500*time.Microsecond)
		m.Outcome("emit", "appended", 3)
		m.Following(1)
		m.Measure(metric.OldestWait, 2.5)
		want := []string{
			`{"_aws":{"Timestamp":946684800000,"CloudWatchMetrics":[{"Namespace":"Millrace","Dimensions":[["store","route","status"]],
				"Metrics":[{"Name":"millrace_http_request_duration_seconds","Unit":"Seconds"}]}]},"store":"dynamodb:millrace","route":"POST /event","status":"201",
				"millrace_http_request_duration_seconds":0.0015}`,
			`{"_aws":{"Timestamp":946684800000,"CloudWatchMetrics":[{"Namespace":"Millrace","Dimensions":[["store","operation","outcome"]],
				"Metrics":[{"Name":"millrace_operations_total","Unit":"Count"}]},{"Namespace":"Millrace","Dimensions":[["store","operation"]],
				"Metrics":[{"Name":"millrace_events_total","Unit":"Count"}]}]},"store":"dynamodb:millrace","operation":"emit","outcome":"appended",
				"millrace_operations_total":1,"millrace_events_total":3}`,
			`{"_aws":{"Timestamp":946684800000,"CloudWatchMetrics":[{"Namespace":"Millrace","Dimensions":[["store"]],
				"Metrics":[{"Name":"millrace_oldest_wait_seconds","Unit":"Seconds"}]}]},"store":"dynamodb:millrace","millrace_oldest_wait_seconds":2.5}`,
		}
		lines := bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n"))
		if len(lines) != len(want) {
			t.Fatalf("%d lines, want %d:\n%s", len(lines), len(want), out.String())
		}
		for i, line := range lines {
			if diff := cmp.Diff(decode(t, []byte(want[i])), decode(t, line)); diff != "" {
				t.Errorf("line %d (-want +got):\n%s", i, diff)
			}
		}
	})
}

func decode(t *testing.T, text []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}
