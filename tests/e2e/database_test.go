package e2e_test

import (
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/tests/containers"
	"github.com/millrace/millrace/tests/process"
	"github.com/millrace/millrace/tests/witness"
)

// TestLostDatabase: while DynamoDB cannot be reached, every request gets a 503 with Retry-After; nothing acknowledged is
// lost, and with the connection back the same server goes on.
func TestLostDatabase(t *testing.T) {
	t.Parallel()
	wire := connect(t, containers.LocalStack(t))
	prefix := tables(t)
	s := serve(t, "dynamodb:"+prefix, func(s *process.Server) {
		s.Env = append(s.Env, "AWS_ENDPOINT_URL_DYNAMODB=http://"+wire.address, "AWS_REGION=us-east-1",
			"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test")
	})
	c := impatient(t, s)
	var w witness.Witness
	emitSome(t, c, &w, 0, 10)

	wire.cut(true)
	_, emitted := c.Emit(t.Context(), []event.Event{made(1, 0)})
	_, read := c.Read(t.Context(), client.Query{})
	for what, err := range map[string]error{"emit": emitted, "read": read} {
		var refusal *client.Error
		if !errors.As(err, &refusal) || refusal.Status != 503 || refusal.RetryAfter <= 0 {
			t.Errorf("%s without a database = %v, want 503 with Retry-After", what, err)
		}
	}
	if _, _, err := c.Get(t.Context(), "/readyz"); client.StatusOf(err) != 503 {
		t.Errorf("readyz without a database = %v, want 503", err)
	}
	wire.cut(false)
	awaitRoom(t, c, &w)
	intact(t, c, &w)
}

// tables creates the tables of a store, as a user does, and returns their prefix.
func tables(t *testing.T) string {
	t.Helper()
	prefix := containers.Prefix()
	if r := command(t, localStack(t), "", "tables", "--store", "dynamodb:"+prefix); r.status != 0 || !strings.Contains(r.out, prefix) {
		t.Fatalf("millrace tables: %+v", r)
	}
	return prefix
}

// localStack returns the environment variables by which a program uses LocalStack as AWS.
func localStack(t *testing.T) []string {
	t.Helper()
	return []string{"AWS_ENDPOINT_URL=" + containers.LocalStack(t), "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test"}
}

// onLocalStack configures a server whose AWS is there, with more variables.
func onLocalStack(t *testing.T, more ...string) func(*process.Server) {
	t.Helper()
	env := append(localStack(t), more...)
	return func(s *process.Server) { s.Env = append(s.Env, env...) }
}

// wire is a proxy that passes connections on to a server, unless it is cut.
type wire struct {
	address string
	target  string

	mu    sync.Mutex
	isCut bool
	open  map[net.Conn]bool
	group sync.WaitGroup
}

// connect returns a wire to an endpoint, which ends with the test.
func connect(t *testing.T, endpoint string) *wire {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{address: listener.Addr().String(), target: strings.TrimPrefix(endpoint, "http://"), open: map[net.Conn]bool{}}
	w.group.Go(func() { w.accept(listener) })
	t.Cleanup(func() {
		listener.Close()
		w.cut(true)
		w.group.Wait()
	})
	return w
}

// cut ends all connections and refuses new ones, or lets them through again.
func (w *wire) cut(isCut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.isCut = isCut
	for conn := range w.open {
		conn.Close()
	}
	clear(w.open)
}

func (w *wire) accept(listener net.Listener) {
	for {
		here, err := listener.Accept()
		if err != nil {
			return
		}
		there, err := net.DialTimeout("tcp", w.target, 5*time.Second)
		if err != nil || !w.keep(here, there) {
			here.Close()
			if there != nil {
				there.Close()
			}
			continue
		}
		w.group.Go(func() { w.pass(here, there) })
		w.group.Go(func() { w.pass(there, here) })
	}
}

// keep notes a connection; false if the wire is cut.
func (w *wire) keep(here, there net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.isCut {
		return false
	}
	w.open[here], w.open[there] = true, true
	return true
}

func (w *wire) pass(to, from net.Conn) {
	_, _ = io.Copy(to, from) // ends with either side, or with the cut
	to.Close()
	from.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.open, to)
	delete(w.open, from)
}
