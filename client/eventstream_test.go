package client_test

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/shared/event"
)

// streamServer streams events with the ids from 1 to count, of which those that 10 divides do not match.
type streamServer struct {
	count int
	torn  int                                          // events up to this one are evicted
	cut   func(request int) int                        // the connection breaks after so many bytes; negative: it does not
	after func(w http.ResponseWriter, r *http.Request) // what follows when all are sent; nil: the stream ends

	mu       sync.Mutex
	requests []string
}

func (s *streamServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/jobscheduler/master/api/object/" || r.Method == http.MethodPost {
		_, _ = fmt.Fprintf(w, `{"objects":[],"eventId":%d}`, s.torn)
		return
	}
	s.mu.Lock()
	s.requests = append(s.requests, r.URL.RawQuery)
	request := len(s.requests)
	s.mu.Unlock()
	if !strings.HasPrefix(r.Header.Get("Accept"), "text/event-stream") {
		panic("no stream is asked for")
	}
	after, err := strconv.Atoi(r.URL.Query().Get("after"))
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	text := s.text(after)
	if s.cut != nil {
		if n := s.cut(request); n >= 0 && n < len(text) {
			_, _ = io.WriteString(w, text[:n])
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
	}
	_, _ = io.WriteString(w, text)
	_ = http.NewResponseController(w).Flush()
	if s.after != nil {
		s.after(w, r)
	}
}

func (s *streamServer) text(after int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if after < s.torn {
		return "event: torn\ndata: {\"TYPE\":\"Torn\",\"eventId\":99}\n\n"
	}
	var b strings.Builder
	b.WriteString(":\n\n")
	for id := after + 1; id <= s.count; id++ {
		if id%10 == 0 {
			fmt.Fprintf(&b, ":\nid: %d\n\n", id)
		} else {
			fmt.Fprintf(&b, "id: %d\ndata: {\"eventId\":%d,\"key\":\"/k\",\"TYPE\":\"A\",\"text\":%q}\n\n", id, id, strings.Repeat("x", 100*id))
		}
	}
	return b.String()
}

// followed reads until the event with the last id.
func followed(t *testing.T, c *client.Client, q client.Query, last event.ID) (ids []event.ID, snapshots int) {
	t.Helper()
	for step, err := range c.Follow(t.Context(), q) {
		if err != nil {
			t.Fatal(err)
		}
		if step.Snapshot != nil {
			snapshots++
		}
		for _, e := range step.Events {
			if e.Type != "A" || e.Key.Path != "/k" || len(e.Fields) != len(`"text":""`)+100*int(e.ID) {
				t.Errorf("%d is %v with %d bytes", e.ID, e.Key, len(e.Fields))
			}
			ids = append(ids, e.ID)
		}
		if step.Last >= last {
			break
		}
	}
	return ids, snapshots
}

func matching(after, count event.ID) (ids []event.ID) {
	for id := after + 1; id <= count; id++ {
		if id%10 != 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

// A follower has each event once, wherever its streams break off.
func TestFollowOverStreamsThatBreakOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &streamServer{count: 100, cut: func(request int) int { return request * 1237 }}
		c, _ := serve(t, s, client.Options{})
		ids, _ := followed(t, c, client.Query{}, 100)
		if diff := cmp.Diff(matching(0, 100), ids); diff != "" {
			t.Error(diff)
		}
		if n := len(s.requests); n < 10 || n > 150 {
			t.Errorf("%d requests", n)
		}
	})
}

// A stream that carries nothing any more is given up, and one that says that the journal is torn is followed by a snapshot.
func TestFollowOverALostConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &streamServer{count: 25, torn: 5, after: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }}
		c, n := serve(t, s, client.Options{})
		began := time.Now()
		go func() {
			time.Sleep(time.Second)
			n.lose()
			s.mu.Lock()
			defer s.mu.Unlock()
			s.count = 38
		}()
		ids, snapshots := followed(t, c, client.Query{}, 38)
		if diff := cmp.Diff(matching(5, 38), ids); diff != "" || snapshots != 1 {
			t.Errorf("%d snapshots, %s", snapshots, diff)
		}
		if took := time.Since(began); took > 50*time.Second {
			t.Errorf("it took %v to find out", took)
		}
	})
}

// Where nothing matches, a follower goes on from where the server has come to.
func TestFollowWhereNothingMatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &streamServer{count: 10}
		c, _ := serve(t, s, client.Options{})
		var last []event.ID
		for step, err := range c.Follow(t.Context(), client.Query{After: 9}) {
			if err != nil || len(step.Events) > 0 {
				t.Fatalf("%v, %v", step, err)
			}
			if last = append(last, step.Last); len(last) == 3 {
				break
			}
		}
		if diff := cmp.Diff([]event.ID{10, 10, 10}, last); diff != "" {
			t.Error(diff)
		}
		if !strings.Contains(s.requests[1], "after=10") {
			t.Errorf("it went on with %s", s.requests[1])
		}
	})
}

// What is malformed ends a follower.
func TestFollowOverAMalformedStream(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"id: x\n\n", "id: 1\ndata: {\"eventId\":1}\n\n"} {
		synctest.Test(t, func(t *testing.T) {
			c, _ := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, text)
			}), client.Options{})
			for step, err := range c.Follow(t.Context(), client.Query{}) {
				if err == nil || !strings.Contains(err.Error(), "answer") {
					t.Errorf("%q: %v, %v", text, step, err)
				}
			}
		})
	}
}
