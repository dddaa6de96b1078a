package services_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// lambda is Lambda's runtime API for one invocation: it hands an event to a function that asks for the next, and takes the response.
type lambda struct {
	event    string
	deadline time.Time
	invoked  atomic.Bool
	answer   chan string
}

// ServeHTTP serves the API's version 2018-06-01.
func (l *lambda) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case !strings.HasSuffix(r.URL.Path, "/invocation/next"):
		body, _ := io.ReadAll(r.Body)
		l.answer <- string(body)
		w.WriteHeader(http.StatusAccepted)
	case l.invoked.Swap(true):
		<-r.Context().Done() // there is no further one
	default:
		w.Header().Set("Lambda-Runtime-Aws-Request-Id", "1")
		w.Header().Set("Lambda-Runtime-Deadline-Ms", fmt.Sprint(l.deadline.UnixMilli()))
		_, _ = io.WriteString(w, l.event)
	}
}

// TestABacklogOnLambda: the function's program, as Lambda runs it, works off waiting tasks in one invocation, however few
// notifications it was given, and leaves those for which it has no time.
func TestABacklogOnLambda(t *testing.T) {
	t.Parallel()
	const n = 20
	d, target := start(t), receiver(t)
	d.declare(t, target.url)
	var notices atomic.Int64
	d.bridge(t, func() string { notices.Add(1); return "http://127.0.0.1:1" }) // all are lost
	values := strings.Repeat(`{"value":1},`, n-1) + `{"value":1}`
	d.ask(t, http.StatusAccepted, "enqueue-task", "POST", "/api/v1/canvases/c/handlers/S/later/events:batch", "["+values+"]", nil)
	until(t, "all notices are lost", func() bool { return notices.Load() >= n })

	l := &lambda{deadline: time.Now().Add(2 * time.Minute), answer: make(chan string, 1)}
	l.event = `{"Records":[{"messageId":"1","eventSource":"aws:sqs","body":"{\"queue\":\"main\"}"}]}`
	api := httptest.NewServer(l)
	t.Cleanup(api.Close)
	cmd := exec.Command(filepath.Join(programs, "worker"))
	cmd.Env = append(slices.Clone(d.env), "AWS_ENDPOINT_URL="+d.requests["worker"].URL,
		"AWS_LAMBDA_RUNTIME_API="+strings.TrimPrefix(api.URL, "http://"), "AWS_LAMBDA_FUNCTION_NAME=worker")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait(); api.CloseClientConnections() })
	began := time.Now()
	select {
	case answer := <-l.answer:
		if want := `{"batchItemFailures":[]}`; answer != want {
			t.Errorf("answer %s, want %s", answer, want)
		}
	case <-time.After(3 * time.Minute):
		t.Fatal("no answer within 3 minutes")
	}
	got := target.starts("/canvases/c/S/later")
	t.Logf("one invocation for one notice ran %d of %d tasks in %v, and notified %d times", got, n, time.Since(began), notices.Load()-n)
	if got != n {
		t.Errorf("%d tasks ran, want %d", got, n)
	}
}
