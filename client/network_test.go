package client_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"testing"

	"github.com/millrace/millrace/client"
)

// network carries connections to one server within a test's bubble, and may lose them without an error at either end.
type network struct {
	accept chan net.Conn
	closed chan struct{}
	once   sync.Once

	mu    sync.Mutex
	lines []*line
}

// line is one end of a connection.
type line struct {
	net.Conn
	lost chan struct{} // closed when nothing comes through any more
	over chan struct{} // closed with the connection
	once sync.Once
}

// serve returns a client of a server within the bubble of t, and the network between them.
func serve(t *testing.T, handler http.Handler, o client.Options) (*client.Client, *network) {
	t.Helper()
	n := &network{accept: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: handler}
	done := make(chan error)
	go func() { done <- server.Serve(n) }()
	o.URL, o.HTTP = "http://server", &http.Client{Transport: &http.Transport{DialContext: n.dial, MaxIdleConnsPerHost: 100}}
	c, err := client.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return c, n
}

func (n *network) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	l := &line{Conn: here, lost: make(chan struct{}), over: make(chan struct{})}
	select {
	case n.accept <- there:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, l)
	return l, nil
}

// lose makes every present connection carry nothing any more, as when a router between the two forgets them. It returns how many.
func (n *network) lose() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := n.lines
	n.lines = nil
	for _, l := range all {
		close(l.lost)
	}
	return len(all)
}

func (l *line) Write(p []byte) (int, error) {
	select {
	case <-l.lost:
		return len(p), nil
	default:
		return l.Conn.Write(p)
	}
}

func (l *line) Read(p []byte) (int, error) {
	type got struct {
		n   int
		err error
	}
	into, read := make([]byte, len(p)), make(chan got, 1)
	go func() {
		n, err := l.Conn.Read(into)
		read <- got{n, err}
	}()
	select {
	case g := <-read:
		return copy(p, into[:g.n]), g.err
	case <-l.lost:
		<-l.over
		return 0, net.ErrClosed
	}
}

func (l *line) Close() error {
	l.once.Do(func() { close(l.over) })
	return l.Conn.Close()
}

// Accept, Close and Addr make it a listener.
func (n *network) Accept() (net.Conn, error) {
	select {
	case conn := <-n.accept:
		return conn, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept.
func (n *network) Close() error {
	n.once.Do(func() { close(n.closed) })
	return nil
}

// Addr returns a fixed address.
func (n *network) Addr() net.Addr { return &net.UnixAddr{Name: "server"} }
