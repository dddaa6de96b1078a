package pebble

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/millrace/millrace/shared/store"
)

const (
	passPause  = time.Hour   // between two passes over all items
	chunkPause = time.Second // between two chunks of a pass
	chunkKeys  = 10_000      // looked at in a chunk, at most
	chunkBytes = 4 << 20     // read in a chunk, at most, except the last item
)

// sweep removes expired items, pass after pass, until the store is closed or has failed. It pauses between chunks, so that
// nobody waits for it: the contract permits removal and does not require it.
func (s *Store) sweep() {
	var next []byte // where the pass goes on, nil at its beginning
	for {
		pause := chunkPause
		if next == nil {
			pause = passPause
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-s.queue.stop:
		case <-s.failure.dead:
		}
		timer.Stop()
		var err error
		if next, err = s.sweepChunk(next); errors.Is(err, store.ErrClosed) || s.failure.get() != nil {
			return
		} else if err != nil {
			s.log.Warn("expired items stay for now", "error", err)
		}
	}
}

// sweepChunk removes the expired items of one chunk and returns where the next begins, nil after the last or an error.
func (s *Store) sweepChunk(from []byte) (next []byte, err error) {
	ctx := context.Background()
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave(&err)
	expired, next, err := s.expired(from)
	if err != nil {
		return nil, err
	}
	if len(expired) > 0 {
		p := newPending(nil)
		p.expired = expired
		if err := s.commit(ctx, p); err != nil {
			return nil, err
		}
	}
	if next == nil {
		err = s.sweepIdle(ctx)
	}
	return next, err
}

// sweepIdle removes sequencers that may be forgotten, at the end of a pass.
func (s *Store) sweepIdle(ctx context.Context) error {
	idle, err := s.idle()
	if err != nil || len(idle) == 0 {
		return err
	}
	p := newPending(nil)
	p.idle = idle
	return s.commit(ctx, p)
}

// expired returns the keys of a chunk's expired items, and where the next chunk begins.
func (s *Store) expired(from []byte) (keys [][]byte, next []byte, err error) {
	snap := s.snapshot()
	defer snap.release()
	if from == nil {
		from = []byte{kindJournal}
	}
	iter, err := snap.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: []byte{kindDefinitions + 1}})
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, iter.Close()) }()
	now, seen, size := time.Now(), 0, 0
	for ok := iter.First(); ok; ok = iter.Next() {
		if seen++; seen > chunkKeys || size > chunkBytes {
			return keys, bytes.Clone(iter.Key()), nil
		}
		value, err := iter.ValueAndErr()
		if err != nil {
			return nil, nil, err
		}
		size += len(value)
		e, err := parseEntry(value)
		if err != nil {
			return nil, nil, err
		}
		if e.over(now) {
			keys = append(keys, bytes.Clone(iter.Key()))
		}
	}
	return keys, nil, nil
}

// over reports whether the entry has expired.
func (e *entry) over(now time.Time) bool { return e.expires != 0 && e.expires < now.Unix() }

// expire deletes those of the keys that are still expired; items written since, in this group too, stay.
func (g *group) expire(s *Store, keys [][]byte) error {
	for _, key := range keys {
		from := len(g.bytes)
		g.bytes = append(g.bytes, key...)
		at := span{from, len(g.bytes)}
		if g.changed(at) != nil {
			continue
		}
		over, err := s.isOver(key, g.now)
		if err != nil {
			return err
		}
		if !over {
			continue
		}
		if err := g.batch.Delete(key, nil); err != nil {
			return err
		}
		g.note(at, nil)
	}
	return nil
}

func (s *Store) isOver(key []byte, now time.Time) (bool, error) {
	buf, closer, err := s.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer release(closer)
	e, err := parseEntry(buf)
	return e.over(now), err
}
