package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/shared/event"
)

// sharedServer takes events, jobs and synchronizations, single and in arrays, once for each key. What says "refused" is refused, with
// all that came with it.
type sharedServer struct {
	hold func(request int) <-chan struct{} // if set, the request is answered when the channel is closed; nil: at once
	dies func(request int) bool            // if set, says that the response is lost

	mu       sync.Mutex
	requests []int // how many elements each had
	paths    []string
	taken    []string // all elements
	byKey    map[string][]int
	left     int // requests whose client left
}

func (s *sharedServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	all := elementsOf(r, body)
	s.mu.Lock()
	s.requests, s.paths = append(s.requests, len(all)), append(s.paths, r.URL.Path)
	request := len(s.requests)
	s.mu.Unlock()
	if s.hold != nil {
		select {
		case <-s.hold(request):
		case <-r.Context().Done():
			s.mu.Lock()
			s.left++
			s.mu.Unlock()
			return
		}
	}
	if slices.ContainsFunc(all, func(e string) bool { return strings.Contains(e, "refused") }) {
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = io.WriteString(w, `{"status":422,"code":"impossible","detail":"no"}`)
		return
	}
	places := s.take(r.Header.Get("Idempotency-Key"), all)
	if s.dies != nil && s.dies(request) {
		panic(http.ErrAbortHandler)
	}
	answerShared(w, r, places)
}

// elementsOf returns what a request asks for.
func elementsOf(r *http.Request, body []byte) []string {
	if strings.HasSuffix(r.URL.Path, "/tasks") {
		return []string{r.URL.RawQuery}
	}
	if body[0] == '{' {
		return []string{string(body)}
	}
	var list []json.RawMessage
	if err := json.Unmarshal(body, &list); err != nil {
		return []string{"refused, since it is no JSON"}
	}
	all := make([]string, len(list))
	for i := range list {
		all[i] = string(list[i])
	}
	return all
}

// take keeps the elements of a request, once for each key, and returns the place of each.
func (s *sharedServer) take(key string, all []string) (places []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byKey[key] != nil {
		return s.byKey[key]
	}
	for _, e := range all {
		s.taken = append(s.taken, e)
		places = append(places, len(s.taken))
	}
	if key != "" {
		if s.byKey == nil {
			s.byKey = map[string][]int{}
		}
		s.byKey[key] = places
	}
	return places
}

func answerShared(w http.ResponseWriter, r *http.Request, places []int) {
	w.WriteHeader(http.StatusCreated)
	name, batch := map[bool]string{true: "task_id", false: "id"}[strings.Contains(r.URL.Path, "tasks")], []string{}
	for _, n := range places {
		batch = append(batch, fmt.Sprintf(`{%q:"%d"}`, name, n))
	}
	switch {
	case strings.HasSuffix(r.URL.Path, "/event"):
		ids, _ := json.Marshal(places)
		_, _ = fmt.Fprintf(w, `{"eventIds":%s}`, ids)
	case strings.HasSuffix(r.URL.Path, ":batch"):
		_, _ = io.WriteString(w, "["+strings.Join(batch, ",")+"]")
	default:
		_, _ = io.WriteString(w, batch[0])
	}
}

// asked returns how many elements each request had.
func (s *sharedServer) asked() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// has reports how often it has taken an element with that text, and where the first is.
func (s *sharedServer) has(text string) (times int, place string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, e := range s.taken {
		if strings.Contains(e, text) {
			if times++; times == 1 {
				place = fmt.Sprint(i + 1)
			}
		}
	}
	return times, place
}

// sharedCalls are the calls that share requests: each asks for something with the name, and returns where it went.
var sharedCalls = map[string]func(ctx context.Context, c *client.Client, name string) (place string, err error){
	"Emit": func(ctx context.Context, c *client.Client, name string) (string, error) {
		ids, err := c.Emit(ctx, []event.Event{{Type: "A", Fields: []byte(`"name":"` + name + `;"`)}})
		if err != nil {
			return "", err
		}
		return fmt.Sprint(ids[0]), nil
	},
	"AddJob": func(ctx context.Context, c *client.Client, name string) (string, error) {
		job, _, err := c.AddJob(ctx, client.NewJob{Topic: "t", Properties: json.RawMessage(`{"name":"` + name + `;"}`)})
		return job.ID, err
	},
	"EnqueueSync": func(ctx context.Context, c *client.Client, name string) (string, error) {
		id, _, err := c.EnqueueSync(ctx, "s", name+".", 0)
		return id, err
	},
	"AppendToStream": func(ctx context.Context, c *client.Client, name string) (string, error) {
		all, err := c.AppendToStream(ctx, "p", "s", "", client.StreamEvent{Event: client.StreamFact{Name: name + "."}})
		if err != nil {
			return "", err
		}
		return all[0].ID, nil
	},
}

// eachCall runs a test in a bubble for each call that shares requests.
func eachCall(t *testing.T, test func(t *testing.T, call func(ctx context.Context, c *client.Client, name string) (string, error))) {
	t.Parallel()
	for name, call := range sharedCalls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { test(t, call) })
		})
	}
}

// first holds up the first request until it is closed.
func first(until <-chan struct{}) func(int) <-chan struct{} {
	open := make(chan struct{})
	close(open)
	return func(request int) <-chan struct{} {
		if request == 1 {
			return until
		}
		return open
	}
}

// What is asked for while a request is under way goes out together in the next one, and each has its own outcome: the one of a
// hundred that is refused harms no other.
func TestConcurrentCallsShareRequests(t *testing.T) {
	eachCall(t, func(t *testing.T, call func(context.Context, *client.Client, string) (string, error)) {
		until := make(chan struct{})
		s := &sharedServer{hold: first(until)}
		c, _ := serve(t, s, client.Options{})
		var all sync.WaitGroup
		ask := func(name string) {
			place, err := call(t.Context(), c, name)
			times, taken := s.has(name)
			if strings.HasPrefix(name, "refused") {
				if client.StatusOf(err) != 422 || times != 0 {
					t.Errorf("%s: %v, and it was taken %d times", name, err, times)
				}
			} else if err != nil || times != 1 || place != taken {
				t.Errorf("%s: %v, taken %d times, at %s and not %s", name, err, times, taken, place)
			}
		}
		all.Go(func() { ask("alone") })
		synctest.Wait()
		for i := range 100 {
			name := fmt.Sprintf("name%03d", i)
			if i == 37 {
				name = "refused37"
			}
			all.Go(func() { ask(name) })
		}
		synctest.Wait()
		if n := s.asked(); len(n) != 1 {
			t.Errorf("requests of %v elements while the first is under way, want none", n)
		}
		close(until)
		all.Wait()
		if n := s.asked(); n[0] != 1 || n[1] != 100 || len(n) > 20 {
			t.Errorf("requests of %v elements, want 1, 100, and some to find the one that is refused", n)
		}
	})
}

// A single caller waits for nobody.
func TestOneCallerSendsAtOnce(t *testing.T) {
	eachCall(t, func(t *testing.T, call func(context.Context, *client.Client, string) (string, error)) {
		s := &sharedServer{}
		c, _ := serve(t, s, client.Options{})
		began := time.Now()
		for i := range 10 {
			if _, err := call(t.Context(), c, fmt.Sprint("name", i)); err != nil {
				t.Error(err)
			}
		}
		if n := s.asked(); len(n) != 10 || time.Since(began) != 0 {
			t.Errorf("requests of %v elements within %v, want 10 of 1 without any pause", n, time.Since(began))
		}
	})
}

// Who leaves leaves alone: what was not sent is not sent, and what is under way goes on for the others.
func TestACallerThatLeavesHarmsNoOther(t *testing.T) {
	eachCall(t, func(t *testing.T, call func(context.Context, *client.Client, string) (string, error)) {
		until, second := make(chan struct{}), make(chan struct{})
		s := &sharedServer{hold: func(request int) <-chan struct{} { return []chan struct{}{until, second}[min(request, 2)-1] }}
		c, _ := serve(t, s, client.Options{})
		early, leaveEarly := context.WithCancel(t.Context())
		late, leaveLate := context.WithCancel(t.Context())
		var all sync.WaitGroup
		ask := func(ctx context.Context, name string, leaves bool) {
			all.Go(func() {
				if _, err := call(ctx, c, name); (err != nil) != leaves {
					t.Errorf("%s: %v", name, err)
				}
			})
			synctest.Wait()
		}
		ask(t.Context(), "name1", false)
		ask(early, "name2", true)
		ask(late, "name3", true)
		ask(t.Context(), "name4", false)
		leaveEarly()
		synctest.Wait()
		close(until)
		synctest.Wait()
		leaveLate()
		synctest.Wait()
		close(second)
		all.Wait()
		for name, want := range map[string]int{"name1": 1, "name2": 0, "name3": 1, "name4": 1} {
			if times, _ := s.has(name); times != want {
				t.Errorf("%s was taken %d times, want %d", name, times, want)
			}
		}
	})
}

// A request that nobody waits for any more ends.
func TestARequestThatAllHaveLeftEnds(t *testing.T) {
	eachCall(t, func(t *testing.T, call func(context.Context, *client.Client, string) (string, error)) {
		s := &sharedServer{hold: func(int) <-chan struct{} { return nil }}
		c, _ := serve(t, s, client.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() {
				if _, err := call(ctx, c, fmt.Sprint("name", i)); err == nil {
					t.Error("no error")
				}
			})
		}
		all.Wait()
		synctest.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.left != len(s.requests) {
			t.Errorf("%d of %d requests have ended", s.left, len(s.requests))
		}
	})
}

// A request that gets no response holds nobody up.
func TestASlowRequestHoldsNobodyUp(t *testing.T) {
	eachCall(t, func(t *testing.T, call func(context.Context, *client.Client, string) (string, error)) {
		until := make(chan struct{})
		s := &sharedServer{hold: first(until)}
		c, _ := serve(t, s, client.Options{})
		var all, slow sync.WaitGroup
		slow.Go(func() { _, _ = call(t.Context(), c, "name") })
		synctest.Wait()
		began := time.Now()
		for i := range 10 {
			all.Go(func() {
				if _, err := call(t.Context(), c, fmt.Sprint("name", i)); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if took := time.Since(began); took > 50*time.Millisecond {
			t.Errorf("they waited for %v", took)
		}
		close(until)
		slow.Wait()
	})
}

// What the server did before its response was lost is repeated under the same key, and so is done once. Without keys nothing is
// repeated.
func TestLostResponsesOfSharedRequests(t *testing.T) {
	eachCall(t, func(t *testing.T, call func(context.Context, *client.Client, string) (string, error)) {
		for _, patience := range []time.Duration{0, -1} {
			s := &sharedServer{dies: func(request int) bool { return request%3 == 0 }}
			c, _ := serve(t, s, client.Options{Patience: patience})
			var all sync.WaitGroup
			for writer := range 20 {
				all.Go(func() {
					for n := range 10 {
						name := fmt.Sprintf("name%d-%d", writer, n)
						_, err := call(t.Context(), c, name)
						times, _ := s.has(name)
						if err != nil && (patience == 0 && !strings.Contains(err.Error(), "append to") || !client.Temporary(err)) {
							t.Errorf("%s: %v", name, err)
						}
						if err == nil && times != 1 || times > 1 {
							t.Errorf("%s: %v, taken %d times", name, err, times)
						}
					}
				})
			}
			all.Wait()
		}
	})
}

// Of each goroutine, what it asks for is taken in order.
func TestSharedRequestsKeepTheOrderOfEachCaller(t *testing.T) {
	eachCall(t, func(t *testing.T, call func(context.Context, *client.Client, string) (string, error)) {
		s := &sharedServer{}
		c, _ := serve(t, s, client.Options{})
		var all sync.WaitGroup
		for writer := range 20 {
			all.Go(func() {
				last := 0
				for n := range 50 {
					place, err := call(t.Context(), c, fmt.Sprintf("name%d-%d", writer, n))
					var at int
					if _, scan := fmt.Sscan(place, &at); err != nil || scan != nil || at <= last {
						t.Errorf("%d of %d is at %q after %d: %v", n, writer, place, last, err)
					}
					last = at
				}
			})
		}
		all.Wait()
		if n := s.asked(); len(n) > 500 {
			t.Errorf("%d requests for 1,000 calls of 20 goroutines", len(n))
		}
	})
}

// Calls share nothing where they must not: if the client is told so, with a key of the caller's, and where they are large.
func TestCallsThatDoNotShare(t *testing.T) {
	t.Parallel()
	many := slices.Repeat([]event.Event{{Type: "A"}}, 101)
	for name, test := range map[string]struct {
		unshared bool
		call     func(context.Context, *client.Client) error
	}{
		"unshared": {true, func(ctx context.Context, c *client.Client) error {
			_, err := c.Emit(ctx, []event.Event{{Type: "A"}})
			return err
		}},
		"key": {false, func(ctx context.Context, c *client.Client) error {
			_, _, err := c.EmitOnce(ctx, "mine", []event.Event{{Type: "A"}})
			return err
		}},
		"large": {false, func(ctx context.Context, c *client.Client) error {
			_, err := c.Emit(ctx, many)
			return err
		}},
		"fields that end the event": {false, func(ctx context.Context, c *client.Client) error {
			_, err := c.Emit(ctx, []event.Event{{Type: "A", Fields: []byte(`"x":[1]},{"y":"2"`)}})
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				until := make(chan struct{})
				s := &sharedServer{hold: func(int) <-chan struct{} { return until }}
				c, _ := serve(t, s, client.Options{Unshared: test.unshared})
				var all sync.WaitGroup
				for range 10 {
					all.Go(func() {
						if err := test.call(t.Context(), c); err != nil {
							t.Error(err)
						}
					})
				}
				synctest.Wait()
				if n := s.asked(); len(n) != 10 {
					t.Errorf("requests of %v elements at once, want 10", n)
				}
				close(until)
				all.Wait()
			})
		})
	}
}

// Fields that are no JSON are refused alone, whatever they are.
func TestFieldsThatAreNoJSON(t *testing.T) {
	t.Parallel()
	for _, fields := range []string{`"a":`, `"a":1}`, `"a":{`, `"a":"`, `"a":"\"`, `]`, `"a":1},{"b":[`, `"a":[}`} {
		t.Run(fields, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				until := make(chan struct{})
				s := &sharedServer{hold: first(until)}
				c, _ := serve(t, s, client.Options{})
				var all sync.WaitGroup
				emit := func(fields string, status int) {
					all.Go(func() {
						if _, err := c.Emit(t.Context(), []event.Event{{Type: "A", Fields: []byte(fields)}}); client.StatusOf(err) != status {
							t.Errorf("%s: %v", fields, err)
						}
					})
				}
				emit(`"b":1`, 0)
				synctest.Wait()
				emit(`"b":"}]\""`, 0)
				emit(fields, 422)
				emit(`"b":[{"c":{}}]`, 0)
				synctest.Wait()
				close(until)
				all.Wait()
			})
		})
	}
}
