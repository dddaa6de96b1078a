package order

import (
	"context"
	"sync"
	"time"
)

// inline is how a process without Run does what its own writes make due at once, such as the children of a fork: after the write,
// before its caller goes on. What is left, somebody's Sweep does.
type inline struct {
	on   bool
	mu   sync.Mutex            // held by the one that sweeps
	wake func(context.Context) // has another process do what may take long; nil: nobody
}

// inlineTime is how long a write's caller is kept at most.
const inlineTime = 2 * time.Second

// SweepAfterWrites has each write followed by what it makes due at once. It is for processes that live from request to request,
// without Run, and is to be called before any other method.
func (e *Engine) SweepAfterWrites() { e.inline.on = true }

// WakeBy has wake called where another process is to do at once what may take long; see [Engine.Awake]. It is to be called before any
// other method.
func (e *Engine) WakeBy(wake func(context.Context)) { e.inline.wake = wake }

// callAnother has another process do what is due, in processes without Run.
func (e *Engine) callAnother(ctx context.Context) {
	if e.inline.wake != nil {
		e.inline.wake(ctx)
	}
}

// written is called after a write with an alarm for that time.
func (e *Engine) written(ctx context.Context, at int64) {
	e.alarms.at(at)
	if !e.inline.on || at > e.micro() || !e.inline.mu.TryLock() { // who sweeps finds it
		return
	}
	defer e.inline.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), inlineTime)
	defer cancel()
	if err := e.sweepDue(ctx); err != nil && ctx.Err() == nil {
		e.log.Warn("orders that are due were not moved; the next sweep does that", "error", err)
	}
}
