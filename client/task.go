package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// Why a task's context ended.
var (
	// ErrStopped says that somebody asked for the task to be stopped. Any error is the answer.
	ErrStopped = errors.New("client: the task is to be stopped")

	// ErrLost says that the lease is over: the task may run elsewhere, and what this worker makes of it is not wanted.
	ErrLost = errors.New("client: the task's lease is over")

	// ErrDrained says that the worker ends, and has waited long enough.
	ErrDrained = errors.New("client: the worker ends")
)

// rejection is an error after which a task is not tried again.
type rejection struct{ error }

func (r rejection) Unwrap() error { return r.error }

// Reject wraps an error after which the task is not to be tried again, whatever attempts are left.
func Reject(err error) error { return rejection{err} }

// delayed is an error after which the next attempt waits.
type delayed struct {
	error
	by time.Duration
}

func (d delayed) Unwrap() error { return d.error }

// RetryAfter wraps an error after which the next attempt waits so long, instead of what the job says.
func RetryAfter(by time.Duration, err error) error { return delayed{err, by} }

// claimed is a lease as the server answers it.
type claimed struct {
	ID      string          `json:"id"`
	Token   string          `json:"token"`
	Job     string          `json:"job"`
	Attempt int             `json:"attempt"`
	Payload json.RawMessage `json:"payload"`
	Lease   float64         `json:"lease"` // seconds
}

// Task is an attempt at a task that a [Worker] runs. Its methods may be called concurrently.
type Task struct {
	ID      string
	Job     string // path
	Attempt int    // from 1
	Payload json.RawMessage

	mu       sync.Mutex
	lines    []logLine
	progress *Progress
	news     chan struct{} // with room for one: there is much to tell
}

type logLine struct {
	Time    Time   `json:"time"`
	Level   string `json:"level"`
	Message string `json:"message"`
}

// Progress is how far a task is.
type Progress struct {
	Step    int    `json:"step"`
	Steps   int    `json:"steps"`
	ETA     Time   `json:"eta,omitzero"`
	Message string `json:"message,omitempty"`
}

// What one heartbeat carries, well below the megabyte that a request may have; so much is sent without waiting for its time.
const (
	linesAtOnce = 500
	bytesAtOnce = 128 << 10
	maxMessage  = 32 << 10 // of one line; the rest is cut off
)

// Log adds a line to the task's log; level is debug, info, warn or error. It is sent with the next heartbeat.
func (t *Task) Log(level, message string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, logLine{Time{time.Now().UTC()}, level, cutText(message)})
	if t.fits() < len(t.lines) || len(t.lines) == linesAtOnce {
		t.hurry()
	}
}

// fits answers how many lines go with the next heartbeat. The caller holds mu.
func (t *Task) fits() int {
	bytes := 0
	for n := range t.lines {
		if bytes += len(t.lines[n].Message); n > 0 && bytes > bytesAtOnce || n == linesAtOnce {
			return n
		}
	}
	return len(t.lines)
}

// cutText shortens what would not fit in a request with its neighbours.
func cutText(text string) string {
	if len(text) > maxMessage {
		return text[:maxMessage] + "…"
	}
	return text
}

// Report says how far the task is. It is sent with the next heartbeat, the newest only.
func (t *Task) Report(p Progress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.progress = &p
}

// hurry has the heartbeat come now. The caller holds mu.
func (t *Task) hurry() {
	select {
	case t.news <- struct{}{}:
	default:
	}
}

// beat takes what there is to tell; more says that there is more than one heartbeat carries.
func (t *Task) beat() (body []byte, more bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.fits()
	body, err = json.Marshal(struct {
		Progress *Progress `json:"progress,omitempty"`
		Lines    []logLine `json:"logs,omitempty"`
	}{t.progress, t.lines[:n]})
	t.lines, t.progress = t.lines[n:], nil
	return body, len(t.lines) > 0, err
}

func (t *Task) silent() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.lines) == 0 && t.progress == nil
}

// run runs a task, keeps its lease meanwhile, and says how it ended.
func (w *Worker) run(ctx context.Context, c *claimed) {
	t := &Task{ID: c.ID, Job: c.Job, Attempt: c.Attempt, Payload: c.Payload, news: make(chan struct{}, 1)}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	done := make(chan struct{})
	var keeper sync.WaitGroup
	keeper.Go(func() { w.keep(ctx, c, t, done, end) })
	output, err := w.call(ctx, t)
	close(done)
	keeper.Wait()
	if errors.Is(context.Cause(ctx), ErrLost) {
		w.o.OnError(fmt.Errorf("task %s: %w", t.ID, ErrLost))
		return
	}
	if err := w.complete(context.WithoutCancel(ctx), c, t, resultOf(output, err)); err != nil {
		w.o.OnError(fmt.Errorf("client: complete %s: %w", t.ID, err))
	}
}

// call calls the job's function; a panic of it is an error.
func (w *Worker) call(ctx context.Context, t *Task) (output any, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("panic: %v", reason)
		}
	}()
	return w.function(t.Job)(ctx, t)
}

// keep sends heartbeats until the task is done, and ends its context if it is to be stopped or is lost.
func (w *Worker) keep(ctx context.Context, c *claimed, t *Task, done <-chan struct{}, end context.CancelCauseFunc) {
	lease := time.Duration(c.Lease * float64(time.Second))
	ticker := time.NewTicker(max(lease/3, 10*time.Millisecond))
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return
		case <-ticker.C:
		case <-t.news:
		}
		stop, err := w.tell(context.WithoutCancel(ctx), c, t, lease)
		switch status := StatusOf(err); {
		case status == http.StatusConflict, status == http.StatusNotFound:
			end(ErrLost)
			return
		case err != nil:
			w.o.OnError(fmt.Errorf("client: heartbeat of task %s: %w", t.ID, err))
		case stop:
			end(ErrStopped)
		}
	}
}

// tell sends heartbeats until all is told.
func (w *Worker) tell(ctx context.Context, c *claimed, t *Task, patience time.Duration) (stop bool, err error) {
	for more := true; more; {
		var body []byte
		if body, more, err = t.beat(); err != nil {
			return false, err
		}
		q := call{method: http.MethodPost, path: leasePath(c) + "/heartbeat", body: body}
		answer, err := w.c.repeat(ctx, q, patience)
		var alive struct{ Stop bool }
		if err == nil {
			err = answer.decode(&alive)
		}
		if err != nil {
			return false, err
		}
		stop = alive.Stop
	}
	return stop, nil
}

func leasePath(c *claimed) string { return v1 + "leases/" + url.PathEscape(c.Token) }

// result is how an attempt ended, as the server takes it.
type result struct {
	Result     string  `json:"result"`
	Message    string  `json:"message,omitempty"`
	RetryDelay float64 `json:"retry_delay,omitempty"` // seconds
	Output     any     `json:"output,omitempty"`
}

func resultOf(output any, err error) result {
	if err == nil {
		return result{Result: "ok", Output: output}
	}
	r := result{Result: "failed", Message: cutText(err.Error())}
	var refused rejection
	var later delayed
	switch {
	case errors.As(err, &refused):
		r.Result = "cancel"
	case errors.As(err, &later):
		r.RetryDelay = later.by.Seconds()
	}
	return r
}

// complete tells what is left to tell, and the result. An output that is no JSON, or too large, makes it a failure.
func (w *Worker) complete(ctx context.Context, c *claimed, t *Task, r result) error {
	if !t.silent() {
		if _, err := w.tell(ctx, c, t, w.c.patience); err != nil {
			return err
		}
	}
	body, err := json.Marshal(r)
	if err != nil {
		body, err = json.Marshal(result{Result: "failed", Message: "the output has no JSON: " + err.Error()})
	}
	if err != nil {
		return err
	}
	_, err = w.c.repeat(ctx, call{method: http.MethodPost, path: leasePath(c) + "/complete", body: body}, w.c.patience)
	if StatusOf(err) == http.StatusRequestEntityTooLarge && r.Output != nil {
		return w.complete(ctx, c, t, result{Result: "failed", Message: "the output is too large: more than 256 KiB as JSON"})
	}
	return err
}
