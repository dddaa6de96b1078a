package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestNoPatience: with --patience 0s nothing is tried again.
func TestNoPatience(t *testing.T) {
	t.Parallel()
	calls := 0
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls++
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer busy.Close()
	status := run(t.Context(), []string{"snapshot", "--url", busy.URL, "--token", "x", "--patience", "0s"}, console{out: io.Discard, err: io.Discard})
	if status != statusFailed || calls != 1 {
		t.Errorf("status %d after %d calls, want %d after one", status, calls, statusFailed)
	}
}
