package client_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/shared/event"
)

// lineServer responds to each line with the next id, once for each key. After every dying lines it breaks the connection off
// without the result of the last one, which it has appended.
type lineServer struct {
	dying int

	mu       sync.Mutex
	ids      map[string]int // by key
	lines    int
	requests atomic.Int32
}

func (s *lineServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.requests.Add(1)
	out := http.NewResponseController(w)
	if err := out.EnableFullDuplex(); err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.WriteHeader(http.StatusOK)
	_ = out.Flush()
	for in := bufio.NewReader(r.Body); ; {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		id, dies := s.append(line)
		if dies {
			_ = out.SetReadDeadline(time.Unix(1, 0)) // or it would wait for the body
			panic(http.ErrAbortHandler)
		}
		if strings.Contains(line, `"TYPE":"Refused"`) {
			_, _ = io.WriteString(w, `{"status":422,"code":"impossible","detail":"no","errors":[{"location":"body[0].TYPE","message":"no"}]}`+"\n")
		} else {
			_, _ = fmt.Fprintf(w, `{"eventIds":[%d]}`+"\n", id)
		}
		_ = out.Flush()
	}
}

func (s *lineServer) append(line string) (id int, dies bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ids == nil {
		s.ids = map[string]int{}
	}
	key, _, _ := strings.Cut(strings.TrimPrefix(line, `{"idempotencyKey":"`), `"`)
	if _, seen := s.ids[key]; !seen {
		s.ids[key] = len(s.ids) + 1
	}
	s.lines++
	return s.ids[key], s.dying > 0 && s.lines%s.dying == 0
}

func TestEmitter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &lineServer{}
		c, _ := serve(t, s, client.Options{})
		e := c.Emitter()
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				for range 20 {
					if ids, err := e.Emit(t.Context(), []event.Event{{Type: "A", Fields: []byte("\"n\":\n1")}}); len(ids) != 1 || err != nil {
						t.Errorf("%v, %v", ids, err)
					}
				}
				if _, err := e.Emit(t.Context(), []event.Event{{Type: "Refused"}}); client.StatusOf(err) != 422 || !strings.Contains(err.Error(), "no") {
					t.Errorf("refused: %v", err)
				}
			})
		}
		all.Wait()
		if _, err := e.Emit(t.Context(), []event.Event{{Type: "A", Fields: []byte(`"x":"` + strings.Repeat("x", 1<<20) + `"`)}}); client.StatusOf(err) != 413 {
			t.Errorf("too large: %v", err)
		}
		e.Close()
		if n := s.requests.Load(); n != 1 || len(s.ids) != 50*21 {
			t.Errorf("%d requests with %d appends, want 1 with %d", n, len(s.ids), 50*21)
		}
		if _, err := e.Emit(t.Context(), []event.Event{{Type: "A"}}); err == nil {
			t.Error("no error from an emitter that is closed")
		}
	})
}

// A server that dies in the middle has what it acknowledged, and what was sent again once.
func TestEmitterOverAServerThatDies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &lineServer{dying: 37}
		c, n := serve(t, s, client.Options{})
		e := c.Emitter()
		var mu sync.Mutex
		acknowledged := map[event.ID]bool{}
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				for range 20 {
					ids, err := e.Emit(t.Context(), []event.Event{{Type: "A"}})
					if err != nil {
						t.Error(err)
						continue
					}
					mu.Lock()
					acknowledged[ids[0]] = true
					mu.Unlock()
				}
			})
		}
		all.Wait()
		if len(acknowledged) != 400 || len(s.ids) != 400 {
			t.Errorf("%d acknowledged, %d appended, want 400 of both", len(acknowledged), len(s.ids))
		}
		n.lose() // a connection that carries nothing any more is given up
		if _, err := e.Emit(t.Context(), []event.Event{{Type: "A"}}); err == nil {
			t.Error("no error although patience is over before the connection is given up")
		}
		if _, err := e.Emit(t.Context(), []event.Event{{Type: "A"}}); err != nil {
			t.Errorf("after it was given up: %v", err)
		}
		n.lose()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := e.Emit(ctx, []event.Event{{Type: "A"}}); err == nil {
			t.Error("no error although the caller did not wait")
		}
		e.Close()
	})
}

// Without keys nothing is sent twice.
func TestEmitterWithoutPatience(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &lineServer{dying: 1}
		c, _ := serve(t, s, client.Options{Patience: -1})
		e := c.Emitter()
		defer e.Close()
		if _, err := e.Emit(t.Context(), []event.Event{{Type: "A"}}); !client.Temporary(err) || s.lines != 1 {
			t.Errorf("%v after %d lines", err, s.lines)
		}
	})
}

func TestEmitterThatIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_ = http.NewResponseController(w).EnableFullDuplex()
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"status":403,"code":"forbidden","detail":"no"}`)
		}), client.Options{})
		e := c.Emitter()
		defer e.Close()
		if _, err := e.Emit(t.Context(), []event.Event{{Type: "A"}}); client.StatusOf(err) != 403 {
			t.Errorf("%v, want a 403", err)
		}
	})
}
