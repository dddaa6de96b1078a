// Package tally counts the calls of a store.
//
// It is cheap enough to stand in front of every store in use; package meter returns the price of calls on DynamoDB, in tests.
// The package imports store and the standard library.
package tally

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/shared/store"
)

// Store passes each call on to another store and counts it by its method.
type Store struct {
	store.Store // Exclusive and Close are its own

	get, query, write, remove, reserve, sequence, raise, date, ping atomic.Int64
}

// New returns a Store that counts the calls of inner. Closing it closes inner.
func New(inner store.Store) *Store { return &Store{Store: inner} }

// Calls returns how often each method of the port was called so far, failures included, by its name in lower case.
func (s *Store) Calls() map[string]int64 {
	return map[string]int64{
		"get": s.get.Load(), "query": s.query.Load(), "write": s.write.Load(), "remove": s.remove.Load(),
		"reserve": s.reserve.Load(), "sequence": s.sequence.Load(), "raise": s.raise.Load(), "date": s.date.Load(), "ping": s.ping.Load(),
	}
}

// Get counts and passes on.
func (s *Store) Get(ctx context.Context, keys ...store.Key) ([]*store.Item, error) {
	s.get.Add(1)
	return s.Store.Get(ctx, keys...)
}

// Query counts and passes on.
func (s *Store) Query(ctx context.Context, r store.Range) (store.Page, error) {
	s.query.Add(1)
	return s.Store.Query(ctx, r)
}

// Write counts and passes on.
func (s *Store) Write(ctx context.Context, w store.Write) error {
	s.write.Add(1)
	return s.Store.Write(ctx, w)
}

// Remove counts and passes on.
func (s *Store) Remove(ctx context.Context, r store.Range) error {
	s.remove.Add(1)
	return s.Store.Remove(ctx, r)
}

// Reserve counts and passes on.
func (s *Store) Reserve(ctx context.Context, key store.Key, ids int, now int64) (store.Ticket, error) {
	s.reserve.Add(1)
	return s.Store.Reserve(ctx, key, ids, now)
}

// Sequence counts and passes on.
func (s *Store) Sequence(ctx context.Context, key store.Key, eventual bool) (store.Sequence, error) {
	s.sequence.Add(1)
	return s.Store.Sequence(ctx, key, eventual)
}

// Raise counts and passes on.
func (s *Store) Raise(ctx context.Context, key store.Key, position, id int64) error {
	s.raise.Add(1)
	return s.Store.Raise(ctx, key, position, id)
}

// Date counts and passes on.
func (s *Store) Date(ctx context.Context) (time.Time, error) {
	s.date.Add(1)
	return s.Store.Date(ctx)
}

// Ping counts and passes on.
func (s *Store) Ping(ctx context.Context) error {
	s.ping.Add(1)
	return s.Store.Ping(ctx)
}
