package host_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/host"
)

// pipes is a listener in memory, so that connections use virtual time.
type pipes struct {
	accept chan net.Conn
	once   sync.Once
}

func newPipes() *pipes { return &pipes{accept: make(chan net.Conn)} }

func (p *pipes) Accept() (net.Conn, error) {
	conn, open := <-p.accept
	if !open {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.accept) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }

func (p *pipes) dial() net.Conn {
	client, server := net.Pipe()
	p.accept <- server
	return client
}

// ask sends a request's text and returns the response's status.
func ask(t *testing.T, conn net.Conn, text string) int {
	t.Helper()
	if _, err := fmt.Fprint(conn, text); err != nil {
		t.Fatalf("send: %v", err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

const get = "GET / HTTP/1.1\r\nHost: h\r\n\r\n"

// serving runs a server in a bubble of virtual time; stop ends it and returns what Serve returned.
func serving(t *testing.T, s host.Server) (p *pipes, stop func() error) {
	t.Helper()
	s.Log = quiet
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	p = newPipes()
	go func() { ended <- s.Serve(ctx, p) }()
	return p, func() error { cancel(); return <-ended }
}

func TestServeLetsALongPollWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		waits := func(w http.ResponseWriter, r *http.Request) {
			_ = body(t, r.Body)
			select {
			case <-time.After(30 * time.Minute):
			case <-r.Context().Done():
				w.WriteHeader(http.StatusGone)
			}
		}
		p, stop := serving(t, host.Server{Handler: http.HandlerFunc(waits)})
		for _, text := range []string{get, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}"} {
			conn := p.dial()
			if status := ask(t, conn, text); status != http.StatusOK {
				t.Errorf("status %d, want 200 after half an hour", status)
			}
			_ = conn.Close()
		}
		if err := stop(); err != nil {
			t.Errorf("Serve() = %v", err)
		}
	})
}

func TestServeDropsSlowSenders(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"headers": "GET / HTTP/1.1\r\nHost:",
		"body":    "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhalf",
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				reads := func(w http.ResponseWriter, r *http.Request) {
					var rest [10]byte
					for {
						if _, err := r.Body.Read(rest[:]); err != nil {
							w.WriteHeader(http.StatusRequestTimeout)
							return
						}
					}
				}
				p, stop := serving(t, host.Server{Handler: http.HandlerFunc(reads)})
				conn, began := p.dial(), time.Now()
				if status := ask(t, conn, text); status == http.StatusOK {
					t.Error("status 200 for half a request")
				}
				if took := time.Since(began); took > time.Minute {
					t.Errorf("a slow sender was kept for %s", took)
				}
				_ = conn.Close()
				_ = stop()
			})
		})
	}
}

func TestServeDrains(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		takes   time.Duration
		drain   bool // whether the function ends its waits itself
		obeys   bool // whether the handler ends with its context
		status  int
		within  time.Duration
		mistake bool
	}{
		{"a request that ends by itself", 5 * time.Second, false, true, 200, 6 * time.Second, false},
		{"a long poll that is told", time.Hour, true, true, 200, 10 * time.Millisecond, false},
		{"a long poll that is not", time.Hour, false, true, 410, 7600 * time.Millisecond, false},
		{"a handler that hangs", time.Hour, false, false, 0, 8 * time.Second, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				draining, begun, release := make(chan struct{}), make(chan struct{}), make(chan struct{})
				handler := func(w http.ResponseWriter, r *http.Request) {
					close(begun)
					ends := r.Context().Done()
					if !tt.obeys {
						ends = nil
					}
					select {
					case <-time.After(tt.takes):
					case <-draining:
					case <-release:
					case <-ends:
						w.WriteHeader(http.StatusGone)
					}
				}
				s := host.Server{Handler: http.HandlerFunc(handler)}
				if tt.drain {
					s.OnDrain = func() { close(draining) }
				}
				p, stop := serving(t, s)
				status := make(chan int, 1)
				conn := p.dial()
				go func() { status <- ask(t, conn, get) }()
				<-begun
				began := time.Now()
				if err := stop(); (err != nil) != tt.mistake {
					t.Errorf("Serve() = %v, want an error: %v", err, tt.mistake)
				}
				if got := <-status; got != tt.status {
					t.Errorf("status %d, want %d", got, tt.status)
				}
				if took := time.Since(began); took > tt.within {
					t.Errorf("the drain took %s, want at most %s", took, tt.within)
				}
				close(release)
				_ = conn.Close()
			})
		})
	}
}

func TestServeFails(t *testing.T) {
	t.Parallel()
	p := newPipes()
	_ = p.Close()
	if err := (host.Server{Log: quiet}).Serve(t.Context(), p); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Serve(closed listener) = %v, want %v", err, net.ErrClosed)
	}
}

func TestListenSaysWhoseFaultItIs(t *testing.T) {
	t.Parallel()
	taken, err := host.Listen("0")
	if err != nil {
		t.Fatalf("Listen() = %v", err)
	}
	defer func() { _ = taken.Close() }()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	if _, err := host.Listen(port); err == nil || !strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("Listen(taken) = %v", err)
	}
	if _, err := host.Listen("http"); err != nil && !strings.Contains(err.Error(), "PORT") {
		t.Errorf("Listen(http) = %v", err)
	}
	if _, err := host.Listen("-1"); err == nil || !strings.Contains(err.Error(), "PORT") {
		t.Errorf("Listen(-1) = %v, want an error that names PORT", err)
	}
}
