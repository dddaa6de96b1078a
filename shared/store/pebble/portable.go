package pebble

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/millrace/millrace/shared/store"
)

var _ store.Portable = (*Store)(nil)

// Records returns everything as of one moment.
func (s *Store) Records(ctx context.Context) iter.Seq2[*store.Record, error] {
	return func(yield func(*store.Record, error) bool) {
		if err := s.records(ctx, func(r *store.Record) bool { return yield(r, nil) }); err != nil {
			yield(nil, err)
		}
	}
}

// records calls yield for each record until that returns false.
func (s *Store) records(ctx context.Context, yield func(*store.Record) bool) (err error) {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave(&err)
	if err := s.commit(ctx, newPending(nil)); err != nil { // so that sequencers are stored as they are in memory
		return err
	}
	snap := s.snapshot()
	defer snap.release()
	iter, err := snap.NewIter(&pebble.IterOptions{LowerBound: []byte{kindSequencer}, UpperBound: []byte{kindDefinitions + 1}})
	if err != nil {
		return fmt.Errorf("%w: read all: %w", store.ErrUnavailable, err)
	}
	defer func() { _ = iter.Close() }() // Error has told it before
	for ok := iter.First(); ok; ok = iter.Next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		value, err := iter.ValueAndErr()
		if err != nil {
			return fmt.Errorf("%w: read all: %w", store.ErrUnavailable, err)
		}
		r, err := parseRecord(iter.Key(), value)
		if err != nil {
			return fmt.Errorf("%w: key %q: %w", store.ErrDamaged, iter.Key(), err)
		}
		if !yield(r) {
			return nil
		}
	}
	if err := iter.Error(); err != nil {
		return fmt.Errorf("%w: read all: %w", store.ErrUnavailable, err)
	}
	return nil
}

func parseRecord(key, value []byte) (*store.Record, error) {
	if key[0] == kindSequencer {
		k, err := parseKey(key[1:])
		if err != nil {
			return nil, err
		}
		state, _, err := parseSequence(value)
		return &store.Record{Item: store.Item{Key: k}, Sequence: &state}, err
	}
	k, err := parseKey(key)
	if err != nil {
		return nil, err
	}
	e, err := parseEntry(value)
	if err != nil {
		return nil, err
	}
	return &store.Record{Item: *e.item(k)}, nil
}

// tables are the tables by their kind.
var tables = map[byte]store.Table{kindJournal: store.Journal, kindWork: store.Work, kindDefinitions: store.Definitions}

// parseKey is the reverse of appendKey.
func parseKey(key []byte) (k store.Key, err error) {
	if len(key) == 0 || tables[key[0]] == "" {
		return k, errLayout
	}
	k.Table = tables[key[0]]
	var partition []byte
	for rest := key[1:]; ; {
		at := bytes.IndexByte(rest, 0)
		if at < 0 || at+1 == len(rest) {
			return k, errLayout
		}
		partition = append(partition, rest[:at]...)
		if end := rest[at+1] == 1; end {
			k.Partition, k.Sort = string(partition), string(rest[at+2:])
			return k, nil
		}
		partition, rest = append(partition, 0), rest[at+2:]
	}
}

// Load stores records by one commit.
func (s *Store) Load(ctx context.Context, records []store.Record) (err error) {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave(&err)
	p := newPending(nil)
	p.load = records
	return s.commit(ctx, p)
}

// load adds records to the batch; sequencers go with it as all that have changed.
func (g *group) load(s *Store, records []store.Record) error {
	for i := range records {
		r := &records[i]
		if r.Sequence != nil {
			if err := s.restore(r.Item.Key, *r.Sequence); err != nil {
				return err
			}
			continue
		}
		if err := g.set(g.key(r.Item.Key), r.Item); err != nil {
			return err
		}
	}
	return nil
}

// restore gives a sequencer a state.
func (s *Store) restore(key store.Key, state store.Sequence) error {
	s.sequences.mu.Lock()
	defer s.sequences.mu.Unlock()
	q, err := s.sequencer(key)
	if err != nil {
		return err
	}
	if q.Sequence = state; q.passing {
		q.used = time.Now().Unix()
	}
	s.touch(q)
	return nil
}
