package worker_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/notifier"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/tasklog"
	"github.com/millrace/millrace/shared/task"
	"github.com/millrace/millrace/shared/worker"
)

// engine keeps tasks in memory. Its hooks, which may be nil, run before the call and may return an error in its place.
type engine struct {
	claim     func(max int) error
	heartbeat func(token string) error
	hanging   int // so many heartbeats hang
	complete  func(token string, r queue.Result) error
	appendLog func(token string, lines []tasklog.Line) error

	mu      sync.Mutex
	ready   []queue.Lease
	results map[string][]queue.Result // those that were accepted, by token
	lines   map[string][]tasklog.Line
	chunks  map[string]int
	beats   map[string]int
	stops   map[string]bool // the tokens for which heartbeats ask to stop
	asked   map[string]chan struct{}
	claims  []int // the limits of all claims
	ended   chan string
}

func newEngine() *engine {
	return &engine{
		results: map[string][]queue.Result{}, lines: map[string][]tasklog.Line{}, chunks: map[string]int{},
		beats: map[string]int{}, stops: map[string]bool{}, asked: map[string]chan struct{}{}, ended: make(chan string, 100_000),
	}
}

// lease returns one for a task of a job.
func lease(job string, n int) queue.Lease {
	created := time.Date(2026, 1, 2, 3, 4, 5, 678_900_000, time.UTC).UnixMicro()
	id := task.NewID("", job, created, uint32(n))
	return queue.Lease{
		Token: fmt.Sprintf("%s.1.secret", id), Length: 30 * time.Second,
		Task: task.Task{ID: id, Job: job, State: task.Running, Created: created, Attempt: 1, Attempts: 3, Payload: []byte(`{"n":1}`)},
	}
}

func (e *engine) Claim(ctx context.Context, _ queue.Claimer, limit int) ([]queue.Lease, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.claims = append(e.claims, limit)
	if e.claim != nil {
		if err := e.claim(limit); err != nil {
			return nil, err
		}
	}
	n := min(limit, queue.MaxClaim, len(e.ready))
	leases := slices.Clone(e.ready[:n])
	e.ready = e.ready[n:]
	return leases, ctx.Err()
}

func (e *engine) Heartbeat(ctx context.Context, token string, _ queue.Beat) (queue.Alive, error) {
	if e.hanging > 0 {
		e.hanging--
		<-ctx.Done()
		return queue.Alive{}, ctx.Err()
	}
	if e.heartbeat != nil {
		if err := e.heartbeat(token); err != nil {
			return queue.Alive{}, err
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.beats[token]++
	return queue.Alive{Stop: e.stops[token]}, nil
}

func (e *engine) Complete(_ context.Context, token string, r queue.Result) (task.State, error) {
	if e.complete != nil {
		if err := e.complete(token, r); err != nil {
			return "", err
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.results[token] = append(e.results[token], r)
	e.ended <- token
	return task.Succeeded, nil
}

func (e *engine) CompleteAndClaim(ctx context.Context, token string, r queue.Result, _ queue.Claimer, limit int) (task.State, []queue.Lease, error) {
	e.mu.Lock()
	n := min(limit, len(e.ready))
	leases := slices.Clone(e.ready[:n])
	e.ready = e.ready[n:]
	e.mu.Unlock()
	state, err := e.Complete(ctx, token, r)
	return state, leases, err
}

func (e *engine) AppendLog(_ context.Context, token string, lines []tasklog.Line) error {
	if e.appendLog != nil {
		if err := e.appendLog(token, lines); err != nil {
			return err
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lines[token] = append(e.lines[token], lines...)
	e.chunks[token]++
	return nil
}

func (e *engine) StopRequested(token string) (<-chan struct{}, func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	asked := make(chan struct{})
	e.asked[token] = asked
	return asked, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.asked, token)
	}
}

// stop asks for a running task to be stopped.
func (e *engine) stop(token string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	close(e.asked[token])
}

// messages returns a log as "level message".
func (e *engine) messages(token string) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []string
	for _, line := range e.lines[token] {
		all = append(all, line.Level+" "+line.Message)
	}
	return all
}

// explained checks that the log of a failed attempt ends with the reason, and that any other has no line of level error.
func explained(t *testing.T, e *engine, token string, r queue.Result) {
	t.Helper()
	var wrong []string
	for _, line := range e.messages(token) {
		if message, is := strings.CutPrefix(line, "error "); is {
			wrong = append(wrong, message)
		}
	}
	well := r.Outcome == "" || r.Outcome == queue.OK || r.Outcome == queue.Again
	if well && len(wrong) > 0 || !well && (len(wrong) == 0 || wrong[len(wrong)-1] != r.Message) {
		t.Errorf("errors in the log: %q, of an attempt that ended with %q %s", wrong, r.Outcome, r.Message)
	}
}

// definitions is a set that never changes.
type definitions struct{ set *definition.Set }

func (d definitions) Current(context.Context) (*definition.Set, error) { return d.set, nil }

// declared returns definitions of one job /job.
func declared(target definition.Target, timeout time.Duration) definitions {
	return definitions{&definition.Set{Jobs: []definition.Job{{Path: "/job", Target: target, Timeout: timeout}}}}
}

// runFunction runs one attempt of a Go function and returns its result.
func runFunction(t *testing.T, e *engine, timeout time.Duration, f worker.Function) queue.Result {
	t.Helper()
	r := worker.NewRunner(worker.Options{
		Engine: e, Definitions: declared(definition.Target{Go: "f"}, timeout),
		Targets: worker.Targets{Go: worker.Functions{"f": f}},
	})
	return only(t, e, r, lease("/job", 1))
}

// only runs a lease and returns the one result it must have.
func only(t *testing.T, e *engine, r *worker.Runner, l queue.Lease) queue.Result {
	t.Helper()
	r.Run(t.Context(), l)
	if n := len(e.results[l.Token]); n != 1 {
		t.Fatalf("the task was completed %d times, want once", n)
	}
	return e.results[l.Token][0]
}

// notices is a notifier by which the test sends notifications.
type notices chan notifier.Notice

func (r notices) Receive(ctx context.Context, _ int) ([]notifier.Notice, error) {
	select {
	case notice, open := <-r:
		if !open {
			return nil, notifier.ErrClosed
		}
		return []notifier.Notice{notice}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func contains(t *testing.T, what, text, want string) {
	t.Helper()
	if !strings.Contains(text, want) {
		t.Errorf("%s is %q, want it to say %q", what, text, want)
	}
}
