package local

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/notifier"
)

// Notifier is a [notifier.Line] within one process. Make one with [New].
type Notifier struct {
	wake chan struct{} // holds a token while a receiver should look at due; closed by Close

	mu     sync.Mutex
	closed bool
	due    waiting
	later  schedule
	timer  *time.Timer // runs expire; nil until a notification for later was sent
	set    time.Time   // when the timer fires; zero: the timer is not set
}

var _ notifier.Line = (*Notifier)(nil)

// New returns a notifier without notifications.
func New() *Notifier { return &Notifier{wake: make(chan struct{}, 1)} }

// Open returns a notifier for the URL "local:"; place, the part after the colon, must be empty.
func Open(_ context.Context, place string) (notifier.Line, error) {
	if place != "" {
		return nil, fmt.Errorf("local: the notifier in this process has no place, but %q was given", place)
	}
	return New(), nil
}

// Notify adds the notifications; it never waits.
func (b *Notifier) Notify(ctx context.Context, notices ...notifier.Notice) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("local: notice: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return notifier.ErrClosed
	}
	now := time.Now()
	for _, notice := range notices {
		if at := clamp(notice.At, now); at.After(now) {
			b.later.add(notice.Queue, at)
		} else {
			b.due.add(notice.Queue, 1)
		}
	}
	b.notify()
	b.arm(now)
	return nil
}

// clamp limits a time to what the port promises.
func clamp(at, now time.Time) time.Time {
	if limit := now.Add(notifier.MaxDelay); at.After(limit) {
		return limit
	}
	return at
}

// Receive returns the notifications of the queues in turn.
func (b *Notifier) Receive(ctx context.Context, limit int) ([]notifier.Notice, error) {
	if err := ctx.Err(); err != nil { // not checked later: a receiver that was woken takes what there is, or passes the token on
		return nil, fmt.Errorf("local: receive: %w", err)
	}
	for {
		if notices, err := b.take(limit); len(notices) > 0 || err != nil {
			return notices, err
		}
		select {
		case <-b.wake:
		case <-ctx.Done():
			return nil, fmt.Errorf("local: receive: %w", ctx.Err())
		}
	}
}

func (b *Notifier) take(limit int) ([]notifier.Notice, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, notifier.ErrClosed
	}
	notices := b.due.take(limit)
	b.notify()
	return notices, nil
}

// notify leaves a token for the next receiver, if there are notifications.
func (b *Notifier) notify() {
	if b.due.empty() {
		return
	}
	select {
	case b.wake <- struct{}{}:
	default: // there is one already
	}
}

// arm sets the timer to the earliest notification for later.
func (b *Notifier) arm(now time.Time) {
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
func (b *Notifier) expire() {
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
func (b *Notifier) Ping(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return notifier.ErrClosed
	}
	return ctx.Err()
}

// Close drops all notifications and ends every Receive. Further calls of it do nothing.
func (b *Notifier) Close() error {
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
