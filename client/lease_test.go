package client_test

import (
	"context"
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

// fate is how the server handles a request.
type fate func(w http.ResponseWriter, r *http.Request)

// answeredAfter responds with body after d.
func answeredAfter(d time.Duration, body string) fate {
	return func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(d)
		_, _ = io.WriteString(w, body)
	}
}

func answeredBy(body string) fate { return answeredAfter(0, body) }

// hangs reads a request and never responds.
func hangs(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // to its end, so that the server notices when the client leaves
	<-r.Context().Done()
}

// breaks closes the connection before a response.
func breaks(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// stage is a server with prepared responses, by the last part of the path; the last of a list is repeated.
type stage struct {
	mu    sync.Mutex
	began time.Time
	plays map[string][]fate
	seen  map[string][]string // time, key and body of each request
}

func (s *stage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	act := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	s.mu.Lock()
	s.seen[act] = append(s.seen[act], fmt.Sprintf("%.0fs %s", time.Since(s.began).Truncate(time.Second).Seconds(), body))
	if key := r.Header.Get("Idempotency-Key"); act == "claims" {
		s.seen["keys"] = append(s.seen["keys"], key)
	}
	play := answeredBy("{}")
	if act == "exchange" { // the server is older than exchanges
		play = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }
	}
	if left := s.plays[act]; len(left) > 0 {
		play, s.plays[act] = left[0], left[min(1, len(left)-1):]
	}
	s.mu.Unlock()
	play(w, r)
}

const aClaim = `{"claims":[{"id":"x","token":"t","job":"/a","attempt":1,"lease":30}],"waited":0}`

// perform runs a worker against a stage until its one task has ended and its result is reported or lost. It returns the stage and
// the worker's errors.
func perform(t *testing.T, plays map[string][]fate, task func(context.Context) (any, error)) (s *stage, failures []error) {
	t.Helper()
	s = &stage{began: time.Now(), plays: plays, seen: map[string][]string{}}
	s.plays["instances"] = []fate{answeredBy(`{"id":"0123456789abcdef","lease":30}`)}
	s.plays["claims"] = append(s.plays["claims"], hangs)
	c, _ := serve(t, s, client.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	var mu sync.Mutex
	work(ctx, t, c, client.WorkerOptions{
		Jobs: map[string]client.Function{"/a": func(ctx context.Context, _ *client.Task) (any, error) {
			defer cancel()
			return task(ctx)
		}},
		OnError: func(err error) {
			mu.Lock()
			defer mu.Unlock()
			failures = append(failures, err)
		},
	})
	return s, failures
}

// A dead connection costs a heartbeat, not the lease: an attempt is given up after a third of the lease.
func TestOneDeadConnectionLosesNoLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, failures := perform(t, map[string][]fate{
			"claims":    {answeredBy(aClaim)},
			"heartbeat": {hangs, answeredBy(`{"stop":false}`)},
			"complete":  {hangs, answeredBy(`{"state":"SUCCEEDED"}`)},
		}, func(ctx context.Context) (any, error) {
			select {
			case <-ctx.Done():
			case <-time.After(45 * time.Second):
			}
			return nil, context.Cause(ctx)
		})
		if diff := cmp.Diff([]string{"10s {}", "20s {}", "30s {}", "40s {}"}, s.seen["heartbeat"]); diff != "" {
			t.Errorf("heartbeats (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{`45s {"result":"ok"}`, `55s {"result":"ok"}`}, s.seen["complete"]); diff != "" {
			t.Errorf("results (-want +got):\n%s", diff)
		}
		if len(failures) > 0 {
			t.Errorf("failures %v, want none", failures)
		}
	})
}

// The context of a task ends when its lease is over by the worker's own clock, counted from when the request that granted or
// extended it was sent; what the task returns then is not reported.
func TestATaskEndsWithItsLease(t *testing.T) {
	t.Parallel()
	refused := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }
	waited := strings.Replace(aClaim, `"waited":0`, `"waited":7`, 1)
	silent := strings.Replace(aClaim, `,"waited":0`, "", 1)
	for name, test := range map[string]struct {
		claim fate
		beats []fate
		over  time.Duration
	}{
		"hanging":                       {answeredBy(aClaim), []fate{hangs}, 30 * time.Second},
		"breaking":                      {answeredBy(aClaim), []fate{breaks}, 30 * time.Second},
		"refused":                       {answeredBy(aClaim), []fate{refused}, 30 * time.Second},
		"hanging after a slow answer":   {answeredBy(aClaim), []fate{answeredAfter(8*time.Second, `{"stop":false}`), hangs}, 40 * time.Second},
		"stopped before":                {answeredBy(aClaim), []fate{answeredBy(`{"stop":true}`), hangs}, 10 * time.Second},
		"after a claim that waited":     {answeredAfter(9*time.Second, waited), []fate{hangs}, 37 * time.Second},
		"after a claim that was slow":   {answeredAfter(9*time.Second, aClaim), []fate{hangs}, 30 * time.Second},
		"of a server that says no wait": {answeredAfter(9*time.Second, silent), []fate{hangs}, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began, over, cause := time.Now(), time.Duration(0), error(nil)
				s, failures := perform(t, map[string][]fate{"claims": {test.claim}, "heartbeat": test.beats}, func(ctx context.Context) (any, error) {
					<-ctx.Done()
					over, cause = time.Since(began), context.Cause(ctx)
					time.Sleep(time.Minute)
					return "done", nil
				})
				want := client.ErrLost
				if name == "stopped before" {
					want = client.ErrStopped
				}
				if over != test.over || !errors.Is(cause, want) {
					t.Errorf("the context ended after %v: %v, want %v: %v", over, cause, test.over, want)
				}
				if len(s.seen["complete"]) > 0 {
					t.Errorf("reported %v, want nothing", s.seen["complete"])
				}
				if len(failures) != 1 || !errors.Is(failures[0], client.ErrLost) {
					t.Errorf("failures %v, want that the lease is over", failures)
				}
			})
		})
	}
}

// What a failed heartbeat carried is sent by the next, and a result does not wait for heartbeats to succeed.
func TestWhatWasNotToldIsToldLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTasks()
		s.add("t", "/a", nil)
		down := make(chan struct{})
		c, _ := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "heartbeat") {
				select {
				case <-down:
				default:
					hangs(w, r)
					return
				}
			}
			s.ServeHTTP(w, r)
		}), client.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		work(ctx, t, c, client.WorkerOptions{Jobs: map[string]client.Function{"/a": func(_ context.Context, t *client.Task) (any, error) {
			defer cancel()
			t.Log("info", "first")
			t.Report(client.Progress{Step: 1, Steps: 2})
			time.Sleep(15 * time.Second)
			close(down)
			t.Log("info", "second")
			return nil, nil
		}}})
		told := strings.Join(s.beats["t"], "")
		if strings.Count(told, "first") != 1 || strings.Count(told, "second") != 1 || !strings.Contains(told, `"steps":2`) {
			t.Errorf("told %s", told)
		}
		if took := time.Since(began); s.results["t"]["result"] != "ok" || took != 20*time.Second {
			t.Errorf("the result %v came after %v, want 20s: when the heartbeat under way was given up", s.results["t"], took)
		}
	})
}

// Where a router has forgotten all connections, the second attempt is made on a new one.
func TestAConnectionThatIsDeadTakesItsNeighboursAlong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const many = 8
		s := newTasks()
		for i := range many {
			s.add(fmt.Sprint(i), "/a", i)
		}
		c, n := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(time.Millisecond) // of the bubble: until all heartbeats are under way, so that none takes the connection of another
			s.ServeHTTP(w, r)
		}), client.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		work(ctx, t, c, client.WorkerOptions{
			Capacity: many,
			Jobs: map[string]client.Function{"/a": func(ctx context.Context, task *client.Task) (any, error) {
				time.Sleep(11 * time.Second) // each has sent a heartbeat on a connection of its own
				if string(task.Payload) != "0" {
					return nil, nil
				}
				defer cancel()
				time.Sleep(time.Second)
				if all := n.lose(); all < many {
					t.Errorf("%d connections, want one for each task", all)
				}
				select {
				case <-time.After(40 * time.Second):
				case <-ctx.Done():
				}
				return nil, context.Cause(ctx)
			}},
			OnError: func(err error) { t.Error(err) },
		})
		if ended := s.results["0"]["result"]; ended != "ok" {
			t.Errorf("it ended %v, want ok: its lease was kept", ended)
		}
	})
}

// A claim is repeated unchanged, with its key, until it has a response; the next one has another key.
func TestAClaimIsRepeatedWithItsKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := perform(t, map[string][]fate{
			"claims": {answeredBy(`{"claims":[]}`), breaks, hangs, hangs, hangs, answeredBy(aClaim)},
		}, func(context.Context) (any, error) { return nil, nil })
		want := []string{"0s", "0s", "0s", "20s", "42s", "62s"}
		for i, at := range want {
			want[i] = at + ` {"max":1,"wait":10}`
		}
		got, keys := s.seen["claims"], s.seen["keys"]
		if diff := cmp.Diff(want, got[:min(len(got), len(want))]); diff != "" {
			t.Errorf("claims (-want +got):\n%s", diff)
		}
		for i, key := range keys {
			if same := i > 0 && key == keys[i-1]; key == "" || same != (i >= 2 && i <= 5) {
				t.Errorf("key %d = %q after %q", i, key, keys[max(0, i-1)])
			}
		}
	})
}
