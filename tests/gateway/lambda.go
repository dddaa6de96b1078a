package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// timeout is when the gateway gives up an invocation.
const timeout = 29 * time.Second

// function is one with its instances.
type function struct {
	instances []*instance
	calls     atomic.Int64
}

// instance is a process of a function. It is invoked once at a time.
type instance struct {
	t     testing.TB
	name  string
	calls chan *call
	start func()

	mu      sync.Mutex
	current *call
	notes   bytes.Buffer
}

// call is an invocation.
type call struct {
	payload []byte
	until   time.Time
	outcome chan outcome
}

type outcome struct {
	answer []byte
	err    error
}

func newFunction(t testing.TB, o Options, name string) *function {
	f := &function{}
	for range o.Instances {
		i := &instance{t: t, name: name, calls: make(chan *call)}
		i.start = sync.OnceFunc(func() { i.run(filepath.Join(o.Programs, name), o.Env(name)) })
		f.instances = append(f.instances, i)
	}
	return f
}

// invoke hands a payload to the instance whose turn it is, and returns what it returns.
func (f *function) invoke(ctx context.Context, payload []byte) ([]byte, error) {
	i := f.instances[int(f.calls.Add(1))%len(f.instances)]
	i.start()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	c := &call{payload: payload, until: time.Now().Add(timeout), outcome: make(chan outcome, 1)}
	select {
	case i.calls <- c:
	case <-ctx.Done():
		return nil, fmt.Errorf("gateway: %s: %w\n%s", i.name, ctx.Err(), i.said())
	}
	select {
	case out := <-c.outcome:
		return out.answer, out.err
	case <-ctx.Done():
		return nil, fmt.Errorf("gateway: %s: %w\n%s", i.name, ctx.Err(), i.said())
	}
}

// run starts the process, which is killed at the end of the test: Lambda freezes what has nothing to do, and never thaws it.
func (i *instance) run(program string, env []string) {
	api := httptest.NewServer(i)
	cmd := exec.Command(program)
	cmd.Env = append(env, "AWS_LAMBDA_RUNTIME_API="+strings.TrimPrefix(api.URL, "http://"), "AWS_LAMBDA_FUNCTION_NAME="+i.name)
	cmd.Stderr = i
	if err := cmd.Start(); err != nil {
		i.t.Error(err)
		api.Close()
		return
	}
	i.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		api.CloseClientConnections()
		api.Close()
		if i.t.Failed() {
			i.t.Logf("%s: %s", i.name, i.said())
		}
	})
}

// Write keeps what the process says.
func (i *instance) Write(p []byte) (int, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.notes.Write(p)
}

func (i *instance) said() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.notes.String()
}

// ServeHTTP serves Lambda's runtime API, version 2018-06-01, to the process.
func (i *instance) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/invocation/next") {
		i.next(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err == nil && !strings.HasSuffix(r.URL.Path, "/response") {
		err = errors.New("gateway: " + i.name + ": " + string(body))
	}
	i.mu.Lock()
	done := i.current
	i.current = nil
	i.mu.Unlock()
	if done != nil {
		done.outcome <- outcome{body, err}
	}
	w.WriteHeader(http.StatusAccepted)
}

// next hands over the next call.
func (i *instance) next(w http.ResponseWriter, r *http.Request) {
	select {
	case c := <-i.calls:
		i.mu.Lock()
		i.current = c
		i.mu.Unlock()
		w.Header().Set("Lambda-Runtime-Aws-Request-Id", "1")
		w.Header().Set("Lambda-Runtime-Deadline-Ms", fmt.Sprint(c.until.UnixMilli()))
		_, _ = w.Write(c.payload) // the process has ended; the caller waits in vain
	case <-r.Context().Done():
	}
}
