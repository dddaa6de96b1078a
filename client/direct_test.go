package client_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/shared/event"
)

// plainServer is a server as any on the network, and a client that sends nothing twice.
type plainServer struct {
	*httptest.Server
	client *client.Client
	made   atomic.Int32 // connections
}

func servePlain(t *testing.T, handler http.HandlerFunc) *plainServer {
	t.Helper()
	s := new(plainServer)
	s.Server = httptest.NewUnstartedServer(handler)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.made.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	var err error
	if s.client, err = client.New(client.Options{URL: s.URL, Patience: -1}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.client.Close)
	return s
}

func (s *plainServer) emit(text string) error {
	_, err := s.client.Emit(context.Background(), []event.Event{{Type: "A", Fields: []byte(`"text":"` + text + `"`)}})
	return err
}

// emitted responds as to one event, after it has read the request.
func emitted(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, `{"eventIds":[1]}`)
}

func TestConnectionsAreUsedAgain(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("x", 200<<10)
	cases := []struct {
		name    string
		handler http.HandlerFunc
		text    string
		want    int32 // connections for three calls
	}{
		{"one call after the other", emitted, "", 1},
		{"a large request", emitted, big, 1},
		{"a response in chunks", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, `{"eventIds":`)
			_ = http.NewResponseController(w).Flush()
			_, _ = io.WriteString(w, `[1]}`)
		}, "", 1},
		{"a response after early hints", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusEarlyHints)
			emitted(w, r)
		}, "", 1},
		{"a server that closes each connection", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Connection", "close")
			emitted(w, r)
		}, "", 3},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := servePlain(t, c.handler)
			for range 3 {
				if err := s.emit(c.text); err != nil {
					t.Fatal(err)
				}
			}
			if made := s.made.Load(); made != c.want {
				t.Errorf("%d connections for three calls, want %d", made, c.want)
			}
		})
	}
}

// A server that was restarted has closed the connections that were kept; a request that must not be sent twice gets through all the same.
func TestConnectionsThatTheServerHasClosed(t *testing.T) {
	t.Parallel()
	s := servePlain(t, emitted)
	for range 5 {
		if err := s.emit(""); err != nil {
			t.Fatal(err)
		}
		s.CloseClientConnections()
	}
	if made := s.made.Load(); made != 5 {
		t.Errorf("%d connections, want 5", made)
	}
}

// A request is refused before the server has read it.
func TestRefusedUnread(t *testing.T) {
	t.Parallel()
	s := servePlain(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	for _, size := range []int{0, 100 << 10, 255 << 10, 1 << 20} {
		if err := s.emit(strings.Repeat("x", size)); client.StatusOf(err) != http.StatusUnauthorized {
			t.Errorf("emit of %d bytes = %v, want 401", size, err)
		}
	}
}

// Who leaves is not kept waiting, whether the response has begun or not; later calls do not get what was meant for others.
func TestLeavingARequest(t *testing.T) {
	t.Parallel()
	for name, begun := range map[string]bool{"before the response": false, "within the response": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			leave := make(chan struct{})
			s := servePlain(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/slow" {
					emitted(w, r)
					return
				}
				if begun {
					_, _ = io.WriteString(w, "some")
					_ = http.NewResponseController(w).Flush()
				}
				close(leave)
				<-r.Context().Done()
			})
			if err := s.emit(""); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			go func() { <-leave; cancel() }()
			if _, _, err := s.client.Get(ctx, "/slow"); !errors.Is(err, context.Canceled) {
				t.Errorf("get = %v, want %v", err, context.Canceled)
			}
			if err := s.emit(""); err != nil {
				t.Error(err)
			}
		})
	}
}

// A response that breaks off is an error that says so, and is not taken for a whole one.
func TestAResponseThatBreaksOff(t *testing.T) {
	t.Parallel()
	s := servePlain(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "some")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	for range 2 {
		if _, _, err := s.client.Get(context.Background(), "/"); !client.Temporary(err) {
			t.Errorf("get = %v, want a temporary error", err)
		}
	}
}

// A read is repeated on another connection if the server closes one just when a request comes.
func TestAConnectionClosedAsTheRequestComes(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	s := servePlain(t, func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) == 2 {
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, "ok")
	})
	for range 2 {
		if body, _, err := s.client.Get(context.Background(), "/"); err != nil || string(body) != "ok" {
			t.Errorf("get = %q, %v", body, err)
		}
	}
	if n := requests.Load(); n != 3 {
		t.Errorf("%d requests, want 3", n)
	}
}

func TestNobodyListens(t *testing.T) {
	t.Parallel()
	s := servePlain(t, emitted)
	s.Close()
	if err := s.emit(""); !client.IsUnreachable(err) {
		t.Errorf("emit = %v, want an error that says that the server was not reached", err)
	}
}

// TestARequestThatNobodyWants: a request whose context has ended before is not sent, so that it has no effect.
func TestARequestThatNobodyWants(t *testing.T) {
	t.Parallel()
	var came atomic.Int32
	s := servePlain(t, func(w http.ResponseWriter, r *http.Request) {
		came.Add(1)
		emitted(w, r)
	})
	if err := s.emit("there is a connection now"); err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	for range 200 {
		if _, _, err := s.client.EmitOnce(ended, "key", []event.Event{{Type: "A"}}); !errors.Is(err, context.Canceled) {
			t.Fatalf("EmitOnce = %v, want %v", err, context.Canceled)
		}
	}
	if n := came.Load(); n != 1 {
		t.Errorf("%d requests came, want 1", n)
	}
}

// TestHeadersThatCannotBeSent: a key with a line's end in it is refused, and not sent as another key.
func TestHeadersThatCannotBeSent(t *testing.T) {
	t.Parallel()
	var came atomic.Int32
	s := servePlain(t, func(w http.ResponseWriter, r *http.Request) {
		came.Add(1)
		emitted(w, r)
	})
	for _, key := range []string{"a\nb", "a\r\nX: y", "a\x00b"} {
		if _, _, err := s.client.EmitOnce(t.Context(), key, []event.Event{{Type: "A"}}); err == nil {
			t.Errorf("EmitOnce with the key %q = nil, want an error", key)
		}
	}
	if n := came.Load(); n != 0 {
		t.Errorf("%d requests came, want none", n)
	}
}
