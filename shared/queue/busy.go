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

const (
	busyTries = 9               // the most repetitions of a call
	busyPause = time.Second / 2 // the longest bound of a random pause; the first is shortPause
)

// again reports whether to repeat a call, after a random pause whose bound doubles each time.
func (p *patient) again(ctx context.Context, err error, try int) bool {
	if err == nil || try == busyTries || !errors.Is(err, store.ErrBusy) || ctx.Err() != nil {
		return false
	}
	p.q.pauseUpTo(ctx, min(shortPause<<try, busyPause))
	return true
}

// Get reads items by key.
func (p *patient) Get(ctx context.Context, keys ...store.Key) ([]*store.Item, error) {
	items, err := p.Store.Get(ctx, keys...)
	for try := 0; p.again(ctx, err, try); try++ {
		items, err = p.Store.Get(ctx, keys...)
	}
	return items, err
}

// Query reads a range.
func (p *patient) Query(ctx context.Context, r store.Range) (store.Page, error) {
	page, err := p.Store.Query(ctx, r)
	for try := 0; p.again(ctx, err, try); try++ {
		page, err = p.Store.Query(ctx, r)
	}
	return page, err
}

// Write applies w. If the outcome stays open, what this process knows is read again.
func (p *patient) Write(ctx context.Context, w store.Write) error {
	err := p.Store.Write(ctx, w)
	for try := 0; p.again(ctx, err, try); try++ {
		err = p.Store.Write(ctx, w)
	}
	p.q.doubtIf(err)
	return err
}

// Remove deletes a range.
func (p *patient) Remove(ctx context.Context, r store.Range) error {
	err := p.Store.Remove(ctx, r)
	for try := 0; p.again(ctx, err, try); try++ {
		err = p.Store.Remove(ctx, r)
	}
	return err
}

// Reserve takes a ticket.
func (p *patient) Reserve(ctx context.Context, key store.Key, ids int, now int64) (store.Ticket, error) {
	ticket, err := p.Store.Reserve(ctx, key, ids, now)
	for try := 0; p.again(ctx, err, try); try++ {
		ticket, err = p.Store.Reserve(ctx, key, ids, now)
	}
	return ticket, err
}

// Sequence reads a sequencer.
func (p *patient) Sequence(ctx context.Context, key store.Key, eventual bool) (store.Sequence, error) {
	sequence, err := p.Store.Sequence(ctx, key, eventual)
	for try := 0; p.again(ctx, err, try); try++ {
		sequence, err = p.Store.Sequence(ctx, key, eventual)
	}
	return sequence, err
}

// Raise moves the floor of a sequencer up.
func (p *patient) Raise(ctx context.Context, key store.Key, position, id int64) error {
	err := p.Store.Raise(ctx, key, position, id)
	for try := 0; p.again(ctx, err, try); try++ {
		err = p.Store.Raise(ctx, key, position, id)
	}
	return err
}

// Date returns the store's date.
func (p *patient) Date(ctx context.Context) (time.Time, error) {
	date, err := p.Store.Date(ctx)
	for try := 0; p.again(ctx, err, try); try++ {
		date, err = p.Store.Date(ctx)
	}
	return date, err
}
