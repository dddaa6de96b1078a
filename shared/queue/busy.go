package queue

import (
	"context"
	"errors"
	"time"

	"github.com/millrace/millrace/shared/store"
)

// patient is a store that repeats calls that find the store busy: throttled, or with another transaction under way on an item,
// which takes some milliseconds. A refused call has had no effect. So no operation of the engine fails for one such conflict, and
// no caller has to repeat it.
type patient struct {
	store.Store
	q *Queue
}

// Patient returns the queue's store; its calls are repeated while the store is busy, as those of the queue are. The text of an error
// and its meaning are the store's.
func (q *Queue) Patient() store.Store { return q.store }

const (
	busyTries     = 9               // the most repetitions of a call
	throttledFrom = 2               // the repetition before which a transaction of another would be over
	busyPause     = time.Second / 2 // the longest bound of a random pause; the first is shortPause
)

// retry returns what call returns when the store is not busy. Before each repetition it pauses for a random time, whose bound doubles.
func retry[T any](ctx context.Context, p *patient, call func() (T, error)) (T, error) {
	for try := 0; ; try++ {
		result, err := call()
		if err == nil || try == busyTries || !errors.Is(err, store.ErrBusy) || ctx.Err() != nil {
			return result, err
		}
		if try >= throttledFrom {
			p.q.parts.met()
		}
		p.q.pauseUpTo(ctx, min(shortPause<<try, busyPause))
	}
}

// retryError is retry of a call that returns only an error.
func (p *patient) retryError(ctx context.Context, call func() error) error {
	_, err := retry(ctx, p, func() (struct{}, error) { return struct{}{}, call() })
	return err
}

// Get reads items by key.
func (p *patient) Get(ctx context.Context, keys ...store.Key) ([]*store.Item, error) {
	return retry(ctx, p, func() ([]*store.Item, error) { return p.Store.Get(ctx, keys...) })
}

// Query reads a range.
func (p *patient) Query(ctx context.Context, r store.Range) (store.Page, error) {
	return retry(ctx, p, func() (store.Page, error) { return p.Store.Query(ctx, r) })
}

// Write applies w. If the outcome stays open, what this process knows is read again.
func (p *patient) Write(ctx context.Context, w store.Write) error {
	err := p.retryError(ctx, func() error { return p.Store.Write(ctx, w) })
	p.q.doubtIf(err)
	return err
}

// Remove deletes a range.
func (p *patient) Remove(ctx context.Context, r store.Range) error {
	return p.retryError(ctx, func() error { return p.Store.Remove(ctx, r) })
}

// Reserve takes a ticket.
func (p *patient) Reserve(ctx context.Context, key store.Key, ids int, now int64) (store.Ticket, error) {
	return retry(ctx, p, func() (store.Ticket, error) { return p.Store.Reserve(ctx, key, ids, now) })
}

// Sequence reads a sequencer.
func (p *patient) Sequence(ctx context.Context, key store.Key, eventual bool) (store.Sequence, error) {
	return retry(ctx, p, func() (store.Sequence, error) { return p.Store.Sequence(ctx, key, eventual) })
}

// Raise moves the floor of a sequencer up.
func (p *patient) Raise(ctx context.Context, key store.Key, position, id int64) error {
	return p.retryError(ctx, func() error { return p.Store.Raise(ctx, key, position, id) })
}

// Date returns the store's date.
func (p *patient) Date(ctx context.Context) (time.Time, error) {
	return retry(ctx, p, func() (time.Time, error) { return p.Store.Date(ctx) })
}
