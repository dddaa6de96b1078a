package bench

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/client"
)

func TestUsed(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`# HELP go_goroutines Number of goroutines that currently exist.
# TYPE go_goroutines gauge
go_goroutines 2012
millrace_http_request_duration_seconds_sum{route="POST /api/v1/instances",status="201"} 1.5
millrace_http_request_duration_seconds_count{route="POST /api/v1/instances",status="201"} 1000
millrace_http_request_duration_seconds_count{route="GET /metrics",status="200"} 2
process_cpu_seconds_total 0.25
process_resident_memory_bytes 1.2e+08
`))
	}))
	defer server.Close()
	c, err := client.New(client.Options{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	got, err := used(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	want := usage{cpu: 0.25, memory: 120e6, goroutines: 2012, requests: 1002}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(usage{})); diff != "" {
		t.Error(diff)
	}
}
