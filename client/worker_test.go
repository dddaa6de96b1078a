package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/client"
)

// tasks is a server without exchanges that grants tasks and records their heartbeats and results.
type tasks struct {
	mu      sync.Mutex
	waiting []map[string]any
	results map[string]map[string]any // by token
	beats   map[string][]string
	answer  map[string]string // to heartbeats, by token
	status  map[string]int
	left    chan struct{}
	news    chan struct{}
	alive   int // heartbeats of the instance
	drain   int // of those, the one that is told to drain
}

func newTasks() *tasks {
	return &tasks{
		results: map[string]map[string]any{}, beats: map[string][]string{}, answer: map[string]string{}, status: map[string]int{},
		left: make(chan struct{}), news: make(chan struct{}, 10),
	}
}

func (s *tasks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body map[string]any
	text, _ := io.ReadAll(r.Body) // to its end, so that the server notices when the client leaves
	_ = json.Unmarshal(text, &body)
	path := strings.Split(strings.TrimPrefix(r.URL.Path, "/api/v1/"), "/")
	answer, status := s.do(r, path, body)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer)
}

func (s *tasks) do(r *http.Request, path []string, body map[string]any) (any, int) {
	last := path[len(path)-1]
	if last == "claims" {
		wait, _ := body["wait"].(float64)
		return s.claims(r.Context(), int(body["max"].(float64)), time.Duration(wait*float64(time.Second))), 200
	}
	if last == "exchange" {
		return map[string]any{"code": "not_found"}, 404
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch token := path[1:]; {
	case r.Method == "POST" && last == "instances":
		return map[string]any{"id": "i1", "term": 1, "lease": 30}, 201
	case r.Method == "PUT":
		s.alive++
		return map[string]any{"lease": 30, "draining": s.alive == s.drain}, 200
	case r.Method == "DELETE":
		close(s.left)
		return nil, 204
	case last == "heartbeat":
		text, _ := json.Marshal(body)
		s.beats[token[0]] = append(s.beats[token[0]], string(text))
		return json.RawMessage(s.answer[token[0]]), s.status[token[0]]
	case last == "complete" && len(fmt.Sprint(body["output"])) > 256<<10:
		return map[string]any{"code": "too_large"}, 413
	case last == "complete" && strings.HasPrefix(fmt.Sprint(body["output"]), strings.Repeat("[", 101)):
		return map[string]any{"code": "invalid", "detail": "body.output: is nested too deep"}, 400
	case last == "complete":
		s.results[token[0]] = body
		s.news <- struct{}{}
		return map[string]any{"state": "SUCCEEDED"}, 200
	}
	return map[string]any{}, 200
}

// claims returns the waiting tasks, and waits for one if there is none.
func (s *tasks) claims(ctx context.Context, most int, wait time.Duration) any {
	s.mu.Lock()
	n := min(most, len(s.waiting))
	out := s.waiting[:n]
	s.waiting = s.waiting[n:]
	s.mu.Unlock()
	if n == 0 {
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
	return map[string]any{"claims": out}
}

func (s *tasks) add(token, job string, payload any) {
	s.waiting = append(s.waiting, map[string]any{
		"id": "id-" + token, "token": token, "job": job, "attempt": 1, "payload": payload, "lease": 30,
	})
	s.answer[token], s.status[token] = `{"stop":false}`, 200
}

// work runs a worker until ctx ends or it is told to drain.
func work(ctx context.Context, t *testing.T, c *client.Client, o client.WorkerOptions) {
	t.Helper()
	if err := c.Worker(o).Run(ctx); err != nil {
		t.Errorf("Run = %v, want nil after a drain", err)
	}
}

func TestWorker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTasks()
		s.add("ok", "/topics/a/x", 1)
		s.add("failed", "/topics/a/x", 2)
		s.add("later", "/topics/a/x", 3)
		s.add("no", "/topics/a/x", 4)
		s.add("large", "/topics/a/x", 5)
		s.add("now", "/topics/a/x", 6)
		s.add("panic", "/topics/b", nil)
		s.add("stopped", "/topics/b/c/d", nil)
		s.answer["stopped"] = `{"stop":true}`
		s.add("lost", "/topics/b/c/d", nil)
		s.answer["lost"], s.status["lost"] = `{"code":"conflict"}`, 409
		c, _ := serve(t, s, client.Options{Token: "t"})
		lost := make(chan error, 1)
		w := client.WorkerOptions{
			Capacity: 3,
			Jobs: map[string]client.Function{
				"/topics/a/*": func(_ context.Context, t *client.Task) (any, error) {
					switch string(t.Payload) {
					case "2":
						return nil, errors.New("no luck")
					case "3":
						return nil, client.RetryAfter(90*time.Second, errors.New("busy"))
					case "4":
						return nil, client.Reject(errors.New("never"))
					case "5":
						return strings.Repeat("x", 300<<10), nil
					case "6":
						return nil, client.RetryAfter(0, errors.New("at once"))
					}
					t.Log("info", "at work")
					t.Report(client.Progress{Step: 1, Steps: 2})
					return map[string]int{"n": 7}, nil
				},
				"/topics/**": func(ctx context.Context, _ *client.Task) (any, error) {
					<-ctx.Done()
					return nil, context.Cause(ctx)
				},
				"/topics/b": func(context.Context, *client.Task) (any, error) { panic("oh") },
			},
			OnError: func(err error) {
				if errors.Is(err, client.ErrLost) {
					lost <- err
				}
			},
		}
		ctx, cancel := context.WithCancel(t.Context())
		var done sync.WaitGroup
		done.Go(func() { work(ctx, t, c, w) })
		for range 8 {
			<-s.news
		}
		<-lost
		cancel()
		done.Wait()
		<-s.left
		want := map[string]map[string]any{
			"ok":      {"result": "ok", "output": map[string]any{"n": 7.0}},
			"failed":  {"result": "failed", "message": "no luck"},
			"later":   {"result": "failed", "message": "busy", "retry_delay": 90.0},
			"now":     {"result": "failed", "message": "at once", "retry_delay": 0.0},
			"no":      {"result": "cancel", "message": "never"},
			"large":   {"result": "failed", "message": "the output is too large: more than 256 KiB as JSON"},
			"panic":   {"result": "failed", "message": "panic: oh"},
			"stopped": {"result": "failed", "message": client.ErrStopped.Error()},
		}
		if diff := cmp.Diff(want, s.results); diff != "" {
			t.Error(diff)
		}
		if told := strings.Join(s.beats["ok"], ""); !strings.Contains(told, `"at work"`) || !strings.Contains(told, `"steps":2`) {
			t.Errorf("heartbeats of a task that logs = %s", told)
		}
	})
}

// TestWorkerDrains: when the worker is to end, its running tasks finish and nothing more is claimed.
func TestWorkerDrains(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTasks()
		s.add("first", "/a", nil)
		s.add("second", "/a", nil)
		c, _ := serve(t, s, client.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		work(ctx, t, c, client.WorkerOptions{Jobs: map[string]client.Function{
			"/a": func(inner context.Context, _ *client.Task) (any, error) {
				cancel()
				<-ctx.Done()
				return nil, inner.Err()
			},
		}})
		if diff := cmp.Diff(map[string]map[string]any{"first": {"result": "ok"}}, s.results); diff != "" {
			t.Errorf("results: %s", diff)
		}
	})
}

// TestWorkerBeats: a worker sends three heartbeats within the lease that the server grants, and ends when it is asked to drain.
func TestWorkerBeats(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTasks()
		s.drain = 4 // one is sent to learn whether the server has exchanges
		c, _ := serve(t, s, client.Options{})
		began := time.Now()
		work(t.Context(), t, c, client.WorkerOptions{Jobs: map[string]client.Function{"/a": nil}})
		if took := time.Since(began); took != 30*time.Second || s.alive != 4 {
			t.Errorf("%d heartbeats and the end after %v, want 4 and 30s", s.alive, took)
		}
	})
}

// TestARefusalDoesNotKeepAResultBack: neither an output nor a progress that the server does not take leaves the task to its lease.
func TestARefusalDoesNotKeepAResultBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTasks()
		s.add("deep", "/deep", nil)
		s.add("told", "/told", nil)
		s.answer["told"], s.status["told"] = `{"code":"invalid","detail":"body.progress: want at least 0"}`, 400
		c, _ := serve(t, s, client.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		w := client.WorkerOptions{
			Jobs: map[string]client.Function{
				"/deep": func(context.Context, *client.Task) (any, error) {
					return json.RawMessage(strings.Repeat("[", 101) + strings.Repeat("]", 101)), nil
				},
				"/told": func(_ context.Context, t *client.Task) (any, error) {
					t.Report(client.Progress{Step: -1, Steps: -1})
					return 1, nil
				},
			},
		}
		time.AfterFunc(time.Minute, cancel)
		work(ctx, t, c, w)
		want := map[string]map[string]any{
			"deep": {"result": "failed", "message": "the server does not take the output: 400 Bad Request: body.output: is nested too deep"},
			"told": {"result": "ok", "output": 1.0},
		}
		if diff := cmp.Diff(want, s.results); diff != "" {
			t.Error(diff)
		}
	})
}
