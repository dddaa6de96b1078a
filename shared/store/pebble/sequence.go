package pebble

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/millrace/millrace/shared/store"
)

// sequences are the sequencers in use. They live in memory: a reservation costs no I/O, and rides on the next commit.
// A crash loses the reservations since, together with everything that was written under them.
type sequences struct {
	mu    sync.Mutex
	all   map[store.Key]*sequencer
	dirty []*sequencer
}

type sequencer struct {
	store.Sequence
	key   []byte
	dirty bool
}

// sequencer answers the sequencer of a key, reading it the first time. The lock is held.
func (s *Store) sequencer(key store.Key) (*sequencer, error) {
	if q, ok := s.sequences.all[key]; ok {
		return q, nil
	}
	q := &sequencer{key: append([]byte{kindSequencer}, appendKey(nil, kindOf(key.Table), key)...)}
	found, closer, err := s.db.Get(q.key)
	switch {
	case errors.Is(err, pebble.ErrNotFound):
	case err != nil:
		return nil, s.readError(key, err)
	default:
		q.Sequence, err = parseSequence(found)
		_ = closer.Close() // releases memory only
		if err != nil {
			return nil, s.readError(key, err)
		}
	}
	if s.sequences.all == nil {
		s.sequences.all = map[store.Key]*sequencer{}
	}
	s.sequences.all[key] = q
	return q, nil
}

// Reserve takes the next position and ids new ids, in memory. On a full disk it gives none: what was to be written there
// could not be, and readers would wait for it.
func (s *Store) Reserve(ctx context.Context, key store.Key, ids int, now int64) (t store.Ticket, err error) {
	if err := key.Validate(); err != nil {
		return store.Ticket{}, err
	}
	sent := time.Now()
	if err := s.enter(ctx); err != nil {
		return store.Ticket{}, err
	}
	defer s.leave(&err)
	if err := s.room(); err != nil {
		return store.Ticket{}, err
	}
	s.sequences.mu.Lock()
	defer s.sequences.mu.Unlock()
	q, err := s.sequencer(key)
	if err != nil {
		return store.Ticket{}, err
	}
	if q.Leads(now) {
		if err := store.CheckClock(now, sent); err != nil {
			return store.Ticket{}, err
		}
	}
	if t, err = q.Reserve(ids, now); err != nil {
		return store.Ticket{}, err
	}
	t.Sent = sent
	q.Sequence = t.Sequence
	s.touch(q)
	return t, nil
}

// touch has a sequencer written with the next commit. The lock is held.
func (s *Store) touch(q *sequencer) {
	if !q.dirty {
		q.dirty = true
		s.sequences.dirty = append(s.sequences.dirty, q)
	}
}

// Sequence reads a sequencer.
func (s *Store) Sequence(ctx context.Context, key store.Key, _ bool) (_ store.Sequence, err error) {
	if err := key.Validate(); err != nil {
		return store.Sequence{}, err
	}
	if err := s.enter(ctx); err != nil {
		return store.Sequence{}, err
	}
	defer s.leave(&err)
	s.sequences.mu.Lock()
	defer s.sequences.mu.Unlock()
	q, err := s.sequencer(key)
	if err != nil {
		return store.Sequence{}, err
	}
	return q.Sequence, nil
}

// Raise moves the floor up, durably.
func (s *Store) Raise(ctx context.Context, key store.Key, position, id int64) (err error) {
	if err := key.Validate(); err != nil {
		return err
	}
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave(&err)
	if err := s.raise(key, position, id); err != nil {
		return err
	}
	if err := s.commit(ctx, newPending(nil)); err != nil { // an empty write carries the sequencer
		return fmt.Errorf("%w: raise the floor: %w", store.ErrUnavailable, err)
	}
	return nil
}

func (s *Store) raise(key store.Key, position, id int64) error {
	s.sequences.mu.Lock()
	defer s.sequences.mu.Unlock()
	q, err := s.sequencer(key)
	if err != nil {
		return err
	}
	if position > q.FloorPosition {
		q.FloorPosition, q.FloorID = position, id
		s.touch(q)
	}
	return nil
}

// save adds the sequencers that have moved to a batch. They are at least as far as any write of the batch.
func (s *Store) save(batch *pebble.Batch) error {
	s.sequences.mu.Lock()
	defer s.sequences.mu.Unlock()
	var value [64]byte
	for _, q := range s.sequences.dirty {
		if err := batch.Set(q.key, appendSequence(value[:0], q.Sequence), nil); err != nil {
			return err
		}
		q.dirty = false
	}
	s.sequences.dirty = s.sequences.dirty[:0]
	return nil
}
