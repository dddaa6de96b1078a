package local

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/bell"
)

// Bell is a [bell.Line] within one process. Make one with [New].
type Bell struct {
	wake chan struct{} // holds a token while a receiver should look at due; closed by Close

	mu     sync.Mutex
	closed bool
	due    waiting
	later  schedule
	timer  *time.Timer // runs expire; nil until a notification for later was sent
	set    time.Time   // when the timer fires; zero: the timer is not set
}

var _ bell.Line = (*Bell)(nil)

// New returns a notifier without notifications.
func New() *Bell { return &Bell{wake: make(chan struct{}, 1)} }

// Open returns a notifier for the URL "local:"; place, the part after the colon, must be empty.
func Open(_ context.Context, place string) (bell.Line, error) {
	if place != "" {
		return nil, fmt.Errorf("local: the bell in this process has no place, but %q was given", place)
	}
	return New(), nil
}

// Ring adds the notifications; it never waits.
func (b *Bell) Ring(ctx context.Context, rings ...bell.Ring) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("local: ring: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return bell.ErrClosed
	}
	now := time.Now()
	for _, ring := range rings {
		if at := clamp(ring.At, now); at.After(now) {
			b.later.add(ring.Queue, at)
		} else {
			b.due.add(ring.Queue, 1)
		}
	}
	b.notify()
	b.arm(now)
	return nil
}

// clamp limits a time to what the port promises.
func clamp(at, now time.Time) time.Time {
	if limit := now.Add(bell.MaxDelay); at.After(limit) {
		return limit
	}
	return at
}

// Receive returns the notifications of the queues in turn.
func (b *Bell) Receive(ctx context.Context, limit int) ([]bell.Ring, error) {
	if err := ctx.Err(); err != nil { // not checked later: a receiver that was woken takes what there is, or passes the token on
		return nil, fmt.Errorf("local: receive: %w", err)
	}
	for {
		if rings, err := b.take(limit); len(rings) > 0 || err != nil {
			return rings, err
		}
		select {
		case <-b.wake:
		case <-ctx.Done():
			return nil, fmt.Errorf("local: receive: %w", ctx.Err())
		}
	}
}

func (b *Bell) take(limit int) ([]bell.Ring, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, bell.ErrClosed
	}
	rings := b.due.take(limit)
	b.notify()
	return rings, nil
}

// notify leaves a token for the next receiver, if there are notifications.
func (b *Bell) notify() {
	if b.due.empty() {
		return
	}
	select {
	case b.wake <- struct{}{}:
	default: // there is one already
	}
}

// arm sets the timer to the earliest notification for later.
func (b *Bell) arm(now time.Time) {
	first := b.later.first()
	if first.IsZero() || !b.set.IsZero() && !first.Before(b.set) {
		return
	}
	b.set = first
	if b.timer == nil {
		b.timer = time.AfterFunc(first.Sub(now), b.expire)
		return
	}
	b.timer.Reset(first.Sub(now))
}

// expire moves what has become due. If the timer fires early, because the clock was set back, it is set again.
func (b *Bell) expire() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	now := time.Now()
	b.later.release(now, &b.due)
	b.notify()
	b.set = time.Time{}
	b.arm(now)
}

// Ping returns nil until Close.
func (b *Bell) Ping(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return bell.ErrClosed
	}
	return ctx.Err()
}

// Close drops all notifications and ends every Receive. Further calls of it do nothing.
func (b *Bell) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil
	}
	b.closed = true
	if b.timer != nil {
		b.timer.Stop()
	}
	b.due, b.later = waiting{}, schedule{}
	close(b.wake)
	return nil
}
