package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// Function runs a task. Its context ends when the task is asked to stop, or is no longer this worker's; the cause is
// [ErrStopped], [ErrLost] or [ErrDrained]. The output, if not nil, is stored as JSON of at most 256 KiB. What it returns after
// the lease is over is not reported, since the task may run elsewhere by then.
//
// An error is a failed attempt, which is repeated while attempts are left, unless [Reject] wraps it; [RetryAfter] sets the
// pause. A panic counts as an error.
type Function func(ctx context.Context, t *Task) (output any, err error)

// WorkerOptions are the options of a Worker. Jobs is required.
type WorkerOptions struct {
	// Jobs are the functions by the path of their job, or by a pattern: /a/* means those directly below /a, /a/** all below.
	// Of several that match a job, its own path is taken first, then the longest pattern. At least 1, at most 100.
	Jobs map[string]Function

	Name     string // 1 to 255 characters; default HOST-PID
	Capacity int    // how many tasks run at once, 1 to 10,000; default 1

	// Wait is how long the server waits for a task in one request; default: a third of the instance's lease. If it is longer,
	// a lost response may cost its tasks an attempt.
	Wait time.Duration

	// Drain is how long running tasks may go on when the worker ends; then their contexts end. Default 30 s.
	Drain time.Duration

	// OnError, if set, is called for each error, whether what failed is tried again or given up. It may be called concurrently.
	OnError func(error)
}

// Worker runs tasks as an instance of a server.
type Worker struct {
	c *Client
	o WorkerOptions

	room    chan struct{} // holds a token for each task that runs
	running sync.WaitGroup
	cut     *time.Timer // ends the tasks that run when the worker has ended for too long

	mu    sync.Mutex
	id    string        // of the instance; a new one after its lease was over
	lease time.Duration // of the instance
}

// Worker returns a Worker that does nothing before Run.
func (c *Client) Worker(o WorkerOptions) *Worker {
	if o.Name == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "unnamed"
		}
		o.Name = fmt.Sprintf("%s-%d", host, os.Getpid())
	}
	o.Capacity, o.Wait = max(o.Capacity, 1), max(o.Wait, 0)
	if o.Drain <= 0 {
		o.Drain = 30 * time.Second
	}
	if o.OnError == nil {
		o.OnError = func(error) {}
	}
	return &Worker{c: c, o: o, room: make(chan struct{}, o.Capacity)}
}

// usualLease is the lease of an instance or a task if the server does not say.
const usualLease = 30 * time.Second

// Run claims tasks and runs them until ctx ends, for example on SIGTERM, or the server asks the worker to drain. Then it claims
// no more, lets the running tasks end, leaves, and returns nil. The error says why it could not begin, or that the server
// refuses it.
func (w *Worker) Run(ctx context.Context) error {
	if err := w.register(ctx); err != nil {
		return err
	}
	inner, end := context.WithCancelCause(context.WithoutCancel(ctx)) // of the tasks, which outlive ctx
	defer end(nil)
	cut := sync.OnceFunc(func() { w.cut = time.AfterFunc(w.o.Drain, func() { end(ErrDrained) }) })
	err := w.exchange(ctx, inner, cut)
	if errors.Is(err, errNoExchange) {
		err = w.claimAll(ctx, inner, cut)
	}
	cut()
	defer w.cut.Stop()
	w.running.Wait()
	return errors.Join(err, w.leave(context.WithoutCancel(ctx)))
}

// claimAll claims tasks and runs them by requests of their own, with a server that has no exchanges.
func (w *Worker) claimAll(ctx, inner context.Context, cut func()) error {
	claiming, stop := context.WithCancel(ctx)
	defer stop()
	var beats sync.WaitGroup
	alive, dead := context.WithCancel(inner)
	beats.Go(func() { w.beat(alive, stop) })
	err := w.claim(claiming, inner)
	cut()
	w.running.Wait()
	dead()
	beats.Wait()
	return err
}

func (w *Worker) register(ctx context.Context) error {
	body, err := json.Marshal(map[string]any{
		"name": w.o.Name, "jobs": slices.Sorted(maps.Keys(w.o.Jobs)), "capacity": w.o.Capacity,
	})
	if err != nil {
		return err
	}
	answer, err := w.c.repeat(ctx, call{method: http.MethodPost, path: v1 + "instances", body: body, key: w.c.ownKey()}, w.c.patience)
	var instance struct {
		ID    string
		Lease float64 // seconds
	}
	if err == nil {
		err = answer.decode(&instance)
	}
	if err != nil {
		return fmt.Errorf("client: register %s: %w", w.o.Name, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.id, w.lease = instance.ID, usualLease
	if instance.Lease > 0 {
		w.lease = seconds(instance.Lease)
	}
	return nil
}

// third returns a third of the instance's lease: the time between heartbeats, and how long one attempt at one may take.
func (w *Worker) third() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return max(w.lease/3, 10*time.Millisecond)
}

func (w *Worker) path() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return v1 + "instances/" + url.PathEscape(w.id)
}

// beat sends the instance's heartbeats until ctx ends, and stops the claiming when the server asks the worker to drain.
func (w *Worker) beat(ctx context.Context, stop func()) {
	for wait, pause := w.third(), newPause(); sleep(ctx, wait) == nil; {
		wait = w.third()
		answer, err := w.c.send(ctx, call{method: http.MethodPut, path: w.path(), body: []byte("{}"), within: wait})
		var alive struct{ Draining bool }
		if err == nil {
			err = answer.decode(&alive)
		}
		if alive.Draining {
			stop()
		}
		switch {
		case ctx.Err() != nil:
		case Temporary(err):
			wait = pause.next(err)
			w.c.onRetry(err, wait)
		case err != nil && StatusOf(err) != http.StatusNotFound: // the claims register again
			w.o.OnError(fmt.Errorf("client: heartbeat of %s: %w", w.o.Name, err))
		default:
			pause = newPause()
		}
	}
}

// leave removes the instance; it is no error if it is gone already.
func (w *Worker) leave(ctx context.Context) error {
	err := w.c.act(ctx, http.MethodDelete, w.path())
	if err != nil && StatusOf(err) != http.StatusNotFound {
		return fmt.Errorf("client: leave: %w", err)
	}
	return nil
}

// function returns the function of a job: its own, or that of the longest pattern that matches it.
func (w *Worker) function(job string) Function {
	if own, there := w.o.Jobs[job]; there {
		return own
	}
	best := ""
	for pattern := range w.o.Jobs {
		if matches(pattern, job) && depth(pattern) > depth(best) {
			best = pattern
		}
	}
	return w.o.Jobs[best]
}

// depth orders patterns that match the same job: the deeper root first, and one level before all below.
func depth(pattern string) int { return len(strings.TrimSuffix(pattern, "**")) }

// matches reports whether a pattern matches a job, by the server's rules.
func matches(pattern, job string) bool {
	root, stars := strings.TrimRight(pattern, "*"), strings.Count(pattern, "*")
	below, ok := strings.CutPrefix(job, root)
	switch stars {
	case 0:
		return pattern == job
	case 1:
		return ok && below != "" && !strings.Contains(below, "/")
	default:
		return ok && below != ""
	}
}
