package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/notifier"
	"github.com/millrace/millrace/shared/queue"
)

// PoolOptions are those of a Pool. Runner and Notifier are required.
type PoolOptions struct {
	Runner   *Runner           // runs the tasks
	Notifier notifier.Receiver // the notifier that wakes free workers
	Claimer  queue.Claimer     // the instance that claims, and what it may claim
	Workers  int               // how many tasks run at once; default, also if negative, 16
	Grace    time.Duration     // how long tasks may go on when the pool ends; default 20 s; negative: not at all
}

// Pool runs tasks in a number of workers until its context ends. A worker that completes a task claims the next in the same
// request to the engine; free workers are woken by the notifier.
type Pool struct {
	o     PoolOptions
	log   *slog.Logger
	ended chan struct{} // one for each worker that has become free
}

// NewPool returns a Pool.
func NewPool(o PoolOptions) *Pool {
	if o.Workers <= 0 {
		o.Workers = 16
	}
	if o.Grace == 0 {
		o.Grace = 20 * time.Second
	}
	return &Pool{o: o, log: o.Runner.o.Log, ended: make(chan struct{}, o.Workers)}
}

// Run runs tasks until ctx ends; then it claims no more, and those that run may go on for the grace. Tasks that have not ended
// by then are ended with [ErrShutdown] and go back to their queue. The error is nil, or wraps [notifier.ErrClosed] if the notifier
// was closed, which ends the pool in the same way. Run may be called once.
func (p *Pool) Run(ctx context.Context) error {
	runs, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	ctx, end := context.WithCancel(ctx)
	defer end()
	var workers sync.WaitGroup
	err := p.hire(ctx, func(lease queue.Lease) {
		workers.Go(func() {
			p.work(ctx, runs, lease)
			p.ended <- struct{}{}
		})
	})
	end()
	grace := time.AfterFunc(max(p.o.Grace, 0), func() { stop(ErrShutdown) })
	defer grace.Stop()
	workers.Wait()
	return err
}

// work runs a task and those that follow it, while ctx lasts.
func (p *Pool) work(ctx, runs context.Context, lease queue.Lease) {
	next := func() *queue.Claimer {
		if ctx.Err() != nil {
			return nil
		}
		return &p.o.Claimer
	}
	leases := []queue.Lease{lease}
	for len(leases) > 0 {
		leases = append(leases[1:], p.o.Runner.run(runs, leases[0], next)...)
	}
}

// hire claims tasks for free workers, and starts them, until ctx ends or the notifier is closed.
func (p *Pool) hire(ctx context.Context, start func(queue.Lease)) error {
	busy, ear := 0, newEar(p.o.Notifier)
	var pause backoff
	for {
		busy -= p.free(ctx, busy)
		if ctx.Err() != nil {
			return nil
		}
		leases, err := claim(ctx, p.o.Runner.o.Engine, p.o.Claimer, p.o.Workers-busy)
		for _, lease := range leases {
			start(lease)
		}
		busy += len(leases)
		switch {
		case len(leases) > 0:
			ear.heard, pause = 0, 0
		case err != nil:
			if ctx.Err() == nil {
				p.log.Warn("no task could be claimed; it is tried again", "error", err)
			}
			pause.sleep(ctx)
		default:
			if err := ear.listen(ctx, p.o.Workers-busy); errors.Is(err, notifier.ErrClosed) {
				return fmt.Errorf("worker: wait for the notifier: %w", err)
			} else if err != nil && ctx.Err() == nil {
				p.log.Warn("the notifier cannot be heard; it is tried again", "error", err)
				pause.sleep(ctx)
			}
		}
	}
}

// free returns how many workers have become free, after waiting for one if all are busy.
func (p *Pool) free(ctx context.Context, busy int) (n int) {
	if busy == p.o.Workers {
		select {
		case <-p.ended:
			n++
		case <-ctx.Done():
			return 0
		}
	}
	for {
		select {
		case <-p.ended:
			n++
		default:
			return n
		}
	}
}

// claimTime is how long one claim may take.
const claimTime = 10 * time.Second

// claim claims tasks. When ctx ends, it returns what was being claimed then, since those attempts would be lost otherwise.
func claim(ctx context.Context, engine Engine, by queue.Claimer, limit int) ([]queue.Lease, error) {
	ctx, done := context.WithTimeout(ctx, claimTime)
	defer done()
	return engine.Claim(ctx, by, limit)
}

// backoff is the last pause.
type backoff time.Duration

// sleep sleeps for longer each time: from 100 ms to 5 s.
func (b *backoff) sleep(ctx context.Context) {
	*b = min(max(2**b, backoff(100*time.Millisecond)), backoff(5*time.Second))
	timer := time.NewTimer(time.Duration(*b))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
