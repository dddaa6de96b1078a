package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/tasklog"
)

// hold keeps a lease alive while its task runs.
type hold struct {
	engine Engine
	token  string
	length time.Duration
	ctx    context.Context         // of all calls to the engine: ends with the lease, not with the worker
	end    context.CancelCauseFunc // ends ctx
	cancel context.CancelCauseFunc // ends the attempt

	mu       sync.Mutex
	until    time.Time   // the lease may be valid until then, and not later, if clocks run at the same rate
	timer    *time.Timer // of the next heartbeat
	released bool
}

func newHold(ctx context.Context, engine Engine, lease *queue.Lease, cancel context.CancelCauseFunc) *hold {
	h := &hold{engine: engine, token: lease.Token, length: lease.Length, cancel: cancel}
	if h.length <= 0 {
		h.length = definition.DefaultLease
	}
	h.ctx, h.end = context.WithCancelCause(context.WithoutCancel(ctx))
	h.mu.Lock() // so that beat sees the timer set
	defer h.mu.Unlock()
	h.until = time.Now().Add(h.length)
	if left := time.Until(lease.Expires); left > 0 && left < h.length {
		h.until = time.Now().Add(left) // it was granted some time before the claim returned
	}
	h.timer = time.AfterFunc(time.Until(h.until)-h.length*2/3, h.beat)
	return h
}

// beat sends a heartbeat and sets the timer for the next.
func (h *hold) beat() {
	ctx, done := h.while()
	defer done()
	ctx, cancel := context.WithTimeout(ctx, h.length/3) // so that two calls that hang do not lose the lease
	defer cancel()
	sent := time.Now()
	alive, err := h.engine.Heartbeat(ctx, h.token, queue.Beat{})
	switch {
	case gone(err):
		h.lose()
	case err != nil && !h.alive():
		h.lose()
	case err != nil:
		h.after(h.length / 20)
	default:
		h.extended(sent)
		h.after(h.length / 3)
		if alive.Stop {
			h.cancel(ErrStopped)
		}
	}
}

// while returns a context that ends when the lease does, as far as is known now.
func (h *hold) while() (context.Context, context.CancelFunc) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return context.WithDeadlineCause(h.ctx, h.until, ErrLost)
}

// alive reports whether the lease may still be valid.
func (h *hold) alive() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ctx.Err() == nil && time.Now().Before(h.until)
}

// extended notes that a request sent at a time has extended the lease.
func (h *hold) extended(sent time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if until := sent.Add(h.length); until.After(h.until) {
		h.until = until
	}
}

func (h *hold) after(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.released {
		h.timer.Reset(min(d, time.Until(h.until)))
	}
}

func (h *hold) lose() {
	h.cancel(ErrLost)
	h.end(ErrLost)
}

// rest ends the heartbeats.
func (h *hold) rest() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.released = true
	h.timer.Stop()
}

// release ends the heartbeats and all calls.
func (h *hold) release() {
	h.rest()
	h.end(nil)
}

// gone reports whether an error says that the lease is not valid.
func gone(err error) bool { return errors.Is(err, queue.ErrStale) || errors.Is(err, queue.ErrNoLease) }

// appendLog appends lines by the engine, and tries again while the lease may be valid.
func (h *hold) appendLog(lines []tasklog.Line) error {
	return h.insist(func(ctx context.Context) error {
		sent := time.Now()
		err := h.engine.AppendLog(ctx, h.token, lines)
		if err == nil {
			h.extended(sent)
		}
		return err
	})
}

// complete completes the attempt, and tries again while the lease may be valid. A result that the engine refuses as invalid
// is replaced by a failure that says so. The first request claims the next task for by, if not nil.
func (h *hold) complete(result queue.Result, by *queue.Claimer) (next []queue.Lease, err error) {
	h.rest()
	say := func(ctx context.Context) (err error) {
		if by == nil {
			_, err = h.engine.Complete(ctx, h.token, result)
			return err
		}
		_, next, err = h.engine.CompleteAndClaim(ctx, h.token, result, *by, 1)
		by = nil
		return err
	}
	err = h.insist(say)
	if errors.Is(err, queue.ErrInvalid) {
		result = queue.Result{Outcome: queue.Failed, Code: result.Code, Message: "the result is not valid: " + err.Error()}
		err = h.insist(say)
	}
	return next, err
}

// insist calls do until it succeeds or is refused, or the lease is over.
func (h *hold) insist(do func(context.Context) error) error {
	pause := 20 * time.Millisecond
	for {
		ctx, done := h.while()
		err := do(ctx)
		done()
		if err == nil || gone(err) || errors.Is(err, queue.ErrInvalid) || !h.alive() {
			return err
		}
		h.sleep(pause)
		pause = min(2*pause, time.Second)
	}
}

func (h *hold) sleep(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-h.ctx.Done():
	}
}
