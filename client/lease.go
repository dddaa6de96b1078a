package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// claimed is a lease in the response to a claim.
type claimed struct {
	ID      string          `json:"id"`
	Token   string          `json:"token"`
	Job     string          `json:"job"`
	Attempt int             `json:"attempt"`
	Payload json.RawMessage `json:"payload"`
	Lease   float64         `json:"lease"` // seconds

	granted time.Time // not before this, by the clock of this process
}

// hold is a lease that this worker has. By the worker's own clock it begins when the request that granted or extended it was
// sent; the server counts from a later moment.
type hold struct {
	c      *Client
	task   *Task
	path   string
	length time.Duration
	until  time.Time // over from then on
}

func (w *Worker) hold(c *claimed) *hold {
	length := seconds(c.Lease)
	if length <= 0 {
		length = usualLease
	}
	return &hold{
		c: w.c, path: v1 + "leases/" + url.PathEscape(c.Token), length: length, until: c.granted.Add(length),
		task: &Task{ID: c.ID, Job: c.Job, Attempt: c.Attempt, Payload: c.Payload, much: make(chan struct{}, 1)},
	}
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

// call returns a request under the lease. One attempt may take a third of it, so that two dead connections do not lose it.
func (h *hold) call(act string, body []byte) call {
	return call{method: http.MethodPost, path: h.path + act, body: body, within: h.length / 3}
}

func (h *hold) over() bool { return !time.Now().Before(h.until) }

// run runs a task, extends its lease meanwhile, and reports its result, unless the lease was over by then.
func (w *Worker) run(ctx context.Context, c *claimed) {
	h := w.hold(c)
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	done, lost := make(chan struct{}), make(chan bool, 1)
	go func() { lost <- h.keep(ctx, done, end, w.o.OnError) }()
	output, err := w.call(ctx, h.task)
	close(done)
	if <-lost {
		w.o.OnError(fmt.Errorf("task %s: %w", c.ID, ErrLost))
		return
	}
	if err := h.complete(context.WithoutCancel(ctx), resultOf(output, err)); err != nil {
		w.o.OnError(fmt.Errorf("client: complete %s: %w", c.ID, err))
	}
}

// call calls the job's function; a panic of it becomes an error.
func (w *Worker) call(ctx context.Context, t *Task) (output any, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("panic: %v", reason)
		}
	}()
	return w.function(t.Job)(ctx, t)
}

// keep sends heartbeats until the task is done, and reports whether the lease is over by then. It ends the task's context if the
// task is to be stopped, and with the lease.
func (h *hold) keep(ctx context.Context, done <-chan struct{}, end context.CancelCauseFunc, onError func(error)) (lost bool) {
	next := time.NewTimer(time.Until(h.until) - h.length*2/3)
	defer next.Stop()
	pause, much := newPause(), h.task.much
	for {
		select {
		case <-done:
			return h.over()
		case <-next.C:
		case <-much:
		}
		wait := h.length / 3
		more, stop, err := h.beat(ctx)
		switch status := StatusOf(err); {
		case status == http.StatusConflict, status == http.StatusNotFound, h.over():
			end(ErrLost)
			return true
		case Temporary(err):
			wait, much = pause.next(err), nil
			h.c.onRetry(err, wait)
		case err != nil:
			onError(fmt.Errorf("client: heartbeat of task %s: %w", h.task.ID, err))
		default:
			pause, much = newPause(), h.task.much
		}
		if stop {
			end(ErrStopped)
		}
		if more {
			wait = 0
		}
		next.Reset(min(wait, time.Until(h.until)))
	}
}

// beat sends one heartbeat, once; more says that there is more to send.
func (h *hold) beat(ctx context.Context) (more, stop bool, err error) {
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), h.until)
	defer cancel()
	told, more := h.task.tell()
	body, err := encode(told)
	if err != nil {
		return false, false, err
	}
	answer, err := h.c.send(ctx, h.call("/heartbeat", body))
	var alive struct{ Stop bool }
	if err == nil {
		h.until = answer.sent.Add(h.length)
		err = answer.decode(&alive)
	}
	if Temporary(err) {
		h.task.untold(told)
		more = false
	}
	return more, alive.Stop, err
}

// result is the result of an attempt, as the body of a request.
type result struct {
	Result     string   `json:"result"`
	Message    string   `json:"message,omitempty"`
	RetryDelay *float64 `json:"retry_delay,omitempty"` // seconds; nil: the task's
	Output     any      `json:"output,omitempty"`
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
		seconds := max(later.by, 0).Seconds()
		r.RetryDelay = &seconds
	}
	return r
}

// complete sends the remaining log lines and progress, and the result. An output without a JSON form, or one that the server
// refuses, makes it a failure; a refusal of the rest does not keep the result back.
func (h *hold) complete(ctx context.Context, r result) (err error) {
	var refused error
	for !h.task.silent() {
		told, _ := h.task.tell()
		body, err := encode(told)
		if err == nil {
			_, err = h.c.repeat(ctx, h.call("/heartbeat", body), h.c.patience)
		}
		if isRefused(err) {
			refused = err
		} else if err != nil {
			return err
		}
	}
	body, err := encode(r)
	if err != nil {
		body, err = json.Marshal(result{Result: "failed", Message: "the output has no JSON: " + err.Error()})
	}
	if err != nil {
		return err
	}
	_, err = h.c.repeat(ctx, h.call("/complete", body), h.c.patience)
	if r.Output != nil && isRefused(err) {
		message := "the server does not take the output: " + err.Error()
		if StatusOf(err) == http.StatusRequestEntityTooLarge {
			message = tooLarge
		}
		err = h.complete(ctx, result{Result: "failed", Message: message})
	}
	return errors.Join(refused, err)
}

// tooLarge is the message of a result that the server does not take for its size.
const tooLarge = "the output is too large: more than 256 KiB as JSON"

// isRefused reports whether the server does not take what a request holds.
func isRefused(err error) bool {
	status := StatusOf(err)
	return status == http.StatusBadRequest || status == http.StatusRequestEntityTooLarge
}
