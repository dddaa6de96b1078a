package pebble

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/millrace/millrace/shared/store"
)

// sequences are the sequencers in use. They live in memory: a reservation costs no I/O, and is stored with the next commit.
// A crash loses the reservations since the last commit, together with everything that was written under them.
type sequences struct {
	mu    sync.Mutex
	all   map[store.Key]*sequencer
	dirty []*sequencer
}

type sequencer struct {
	store.Sequence
	key     []byte
	dirty   bool
	passing bool  // it may be removed after [store.PassingFor] without a Reserve
	used    int64 // if passing: the time of the last Reserve, in seconds since 1970
}

// maxSequencers is how many sequencers stay in memory. After a commit that leaves more, those without unsaved changes are dropped.
const maxSequencers = 10_000

// sequencer returns the sequencer of a key, reading it the first time. The lock is held.
func (s *Store) sequencer(key store.Key) (*sequencer, error) {
	if q, ok := s.sequences.all[key]; ok {
		return q, nil
	}
	q := &sequencer{key: append([]byte{kindSequencer}, appendKey(nil, kindOf(key.Table), key)...), passing: key.IsPassing()}
	found, closer, err := s.db.Get(q.key)
	switch {
	case errors.Is(err, pebble.ErrNotFound):
	case err != nil:
		return nil, s.readError(key, err)
	default:
		q.Sequence, q.used, err = parseSequence(found)
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

// Reserve takes the next position and ids new ids, in memory. On a full disk it returns an error: the slot could not be written,
// and readers would wait for it.
func (s *Store) Reserve(ctx context.Context, key store.Key, ids int, now int64) (t store.Ticket, err error) {
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
	if q.Sequence = t.Sequence; q.passing {
		q.used = sent.Unix()
	}
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

// save adds the changed sequencers to a batch. Their positions are at least those of any write in the batch.
func (s *Store) save(batch *pebble.Batch) error {
	s.sequences.mu.Lock()
	defer s.sequences.mu.Unlock()
	var value [64]byte
	for _, q := range s.sequences.dirty {
		if err := batch.Set(q.key, appendSequence(value[:0], q.Sequence, q.used), nil); err != nil {
			return err
		}
		q.dirty = false
	}
	s.sequences.dirty = s.sequences.dirty[:0]
	return nil
}

// trim drops sequencers without unsaved changes from memory, if there are more than maxSequencers. It is called after a commit.
func (s *Store) trim() {
	s.sequences.mu.Lock()
	defer s.sequences.mu.Unlock()
	if len(s.sequences.all) > maxSequencers {
		s.sequences.forget()
	}
}

// forget drops the sequencers without unsaved changes from memory. The lock is held.
func (q *sequences) forget() {
	maps.DeleteFunc(q.all, func(_ store.Key, one *sequencer) bool { return !one.dirty })
}

// idle returns the keys of sequencers that may be removed.
func (s *Store) idle() (keys [][]byte, err error) {
	snap := s.snapshot()
	defer snap.release()
	from := append([]byte{kindSequencer, kindWork}, store.Passing...)
	to := bytes.Clone(from)
	to[len(to)-1]++
	iter, err := snap.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, iter.Close()) }()
	now := time.Now()
	for ok := iter.First(); ok && len(keys) < chunkKeys; ok = iter.Next() {
		value, err := iter.ValueAndErr()
		if err != nil {
			return nil, err
		}
		if is, err := isIdle(value, now); err != nil {
			return nil, err
		} else if is {
			keys = append(keys, bytes.Clone(iter.Key()))
		}
	}
	return keys, nil
}

// isIdle reports whether a sequencer that is passing may be removed, by its value.
func isIdle(value []byte, now time.Time) (bool, error) {
	_, used, err := parseSequence(value)
	return used != 0 && used < now.Add(-store.PassingFor).Unix(), err
}

// drop deletes idle sequencers, except those with a reservation since. A sequencer that is read again before the deletion is
// committed goes on from what was read.
func (s *Store) drop(batch *pebble.Batch, keys [][]byte) error {
	still, err := s.stillIdle(keys)
	if err != nil {
		return err
	}
	s.sequences.mu.Lock()
	defer s.sequences.mu.Unlock()
	s.sequences.forget()
	used := map[string]bool{}
	for _, q := range s.sequences.dirty {
		used[string(q.key)] = true
	}
	for _, key := range still {
		if used[string(key)] {
			continue
		}
		if err := batch.Delete(key, nil); err != nil {
			return err
		}
	}
	return nil
}

// stillIdle returns the keys of those that are stored as idle. It is called by who commits, so that this stays so.
func (s *Store) stillIdle(keys [][]byte) (still [][]byte, err error) {
	now := time.Now()
	for _, key := range keys {
		value, closer, err := s.db.Get(key)
		if errors.Is(err, pebble.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		is, err := isIdle(value, now)
		_ = closer.Close() // releases memory only
		if err != nil {
			return nil, err
		}
		if is {
			still = append(still, key)
		}
	}
	return still, nil
}
