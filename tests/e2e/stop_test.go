package e2e_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/tests/process"
)

// A command that ignores the signal to end, and prints a line when it has begun.
const deaf = `
sources:
  s: {target: {command: [sh, -c, "trap '' TERM; echo begun; while :; do sleep 1; done"]}, collections: [{name: a}]}
`

// TestStopWithALongCommand: a server that is told to stop ends within its drain time, however long a command would go on. Its task
// goes back to the queue with the attempt that it had, and runs again when a server is there.
func TestStopWithALongCommand(t *testing.T) {
	t.Parallel()
	s, c, id := busy(t, "8s")
	if err := s.Stop(); err != nil {
		t.Errorf("the server ended badly: %v", err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	var told []string
	eventually(t, "the program has begun again", func() bool {
		told = nil
		for _, e := range readAll(t, c) {
			if e.Key.TaskID == id {
				fields, _, _ := strings.Cut(string(e.Fields), ",")
				told = append(told, e.Type+" "+fields)
			}
		}
		return len(told) >= 4
	})
	want := []string{`TaskAdded "queue":"sync-tasks"`, `TaskStarted "attempt":1`, `TaskEnded "outcome":"again"`, `TaskStarted "attempt":1`}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if err := s.Stop(); err != nil {
		t.Errorf("the server ended badly: %v", err)
	}
}

// busy returns a server with that drain time, a client of it, and a task whose program has begun and ignores the signal to end.
func busy(t *testing.T, drain string) (s *process.Server, c *client.Client, id string) {
	t.Helper()
	s = &process.Server{Binary: os.Getenv(process.Variable), Store: embedded(t), Token: token, Env: []string{"MILLRACE_DRAIN=" + drain}}
	declared(t, deaf)(s)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	c = dial(t, s)
	id, _, err := c.EnqueueSync(t.Context(), "s", "a", 0)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the program has begun", func() bool { return begun(t, c, id) })
	return s, c, id
}

// begun reports whether a task's program has said that it has begun.
func begun(t *testing.T, c *client.Client, id string) bool {
	t.Helper()
	for line, err := range c.SyncTaskLogs(t.Context(), id) {
		if err != nil {
			t.Fatal(err)
		}
		if line.Message == "begun" {
			return true
		}
	}
	return false
}

// TestStopEndsWhatWaits: a server that is told to stop ends all waiting requests at once, each with a complete response.
func TestStopEndsWhatWaits(t *testing.T) {
	t.Parallel()
	s, c, id := busy(t, "60s")
	const api = "/jobscheduler/master/api/event?return=CustomEvent&after=0&timeout=1h"
	post(t, s, "/api/v1/streams/s/events", streamEvent, "X-Producer-ID", "2480b859-e08a-4414-9c7d-003bc1a4c238")
	instance := post(t, s, "/api/v1/instances", `{"name":"w","jobs":["/topics/**"],"capacity":1}`)
	ends := make(chan error, 6)
	wait := func(method, path, body string, headers ...string) {
		r := newRequest(t, s, method, path, body, headers...)
		go func() { ends <- wholly(r) }()
	}
	wait("GET", api, "")
	wait("GET", api, "", "Accept", "text/event-stream")
	wait("GET", api, "", "Accept", "application/x-ndjson")
	wait("GET", "/api/v1/streams/s/events?timeout=1h&eventName=none", "", "X-Consumer-ID", "f3a7f4f1-6a58-4c43-9d1a-7b63ad1a2b10")
	wait("GET", "/api/v1/tasks/"+id+"/logs?follow=true", "", "Accept", "text/event-stream")
	// A claim is not counted among the followers. The server asks for its body when it is being handled.
	handled := make(chan struct{})
	claim := newRequest(t, s, "POST", "/api/v1/instances/"+between(instance, `"id":"`, `"`)+"/claims", `{"max":1,"wait":"1h"}`, "Expect", "100-continue")
	trace := &httptrace.ClientTrace{Got100Continue: func() { close(handled) }}
	go func() { ends <- wholly(claim.WithContext(httptrace.WithClientTrace(claim.Context(), trace))) }()
	select {
	case <-handled:
	case err := <-ends:
		t.Fatalf("a request ended before the server was told to stop: %v", err)
	}
	eventually(t, "followers wait", func() bool {
		text, _, err := c.Get(t.Context(), "/metrics")
		return err == nil && followers(text) == "5"
	})
	began := time.Now()
	if err := s.Signal(); err != nil {
		t.Fatal(err)
	}
	for range cap(ends) {
		if err := <-ends; err != nil {
			t.Error(err)
		}
	}
	if took := time.Since(began); took > 40*time.Second {
		t.Errorf("it took %v until all had ended, want at once, and not at the end of the drain", took)
	}
	if err := s.Kill(); err != nil {
		t.Error(err)
	}
}

const streamEvent = `{"event":{"name":"n"},"system":{"id":"2480b859-e08a-4414-9c7d-003bc1a4c238","name":"s","time":"2021-03-10T22:13:32Z",
	"timezone":"Europe/Berlin"},"trigger":{"type":"manual","name":"max"},"payload":{}}`

// wholly sends a request and returns what was wrong with the response: it must be complete, and a success or one that says when
// to come back.
func wholly(r *http.Request) error {
	answer, err := process.Client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(bufio.NewReader(answer.Body))
	if err != nil || answer.StatusCode != http.StatusOK && answer.Header.Get("Retry-After") == "" {
		return errors.Join(err, errors.New(r.Method+" "+r.URL.Path+" "+r.Header.Get("Accept")+": "+answer.Status+" "+string(text)))
	}
	return nil
}

// newRequest returns a request with the admin's token; headers are name and value in turn.
func newRequest(t *testing.T, s *process.Server, method, path, body string, headers ...string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), method, s.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// post sends a request that must create something, and returns the response's body.
func post(t *testing.T, s *process.Server, path, body string, headers ...string) string {
	t.Helper()
	answer, err := process.Client.Do(newRequest(t, s, "POST", path, body, headers...))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusCreated {
		t.Fatalf("POST %s = %s %s, %v", path, answer.Status, text, err)
	}
	return string(text)
}

// between returns what stands between two marks of a text.
func between(text, before, after string) string {
	_, rest, _ := strings.Cut(text, before)
	found, _, _ := strings.Cut(rest, after)
	return found
}
