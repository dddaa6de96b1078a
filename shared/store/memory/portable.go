package memory

import (
	"context"
	"iter"

	"github.com/millrace/millrace/shared/store"
)

var _ store.Portable = (*Store)(nil)

// Records returns everything as of one moment.
func (s *Store) Records(ctx context.Context) iter.Seq2[*store.Record, error] {
	return func(yield func(*store.Record, error) bool) {
		all, err := s.records(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		for i := range all {
			if !yield(&all[i], nil) {
				return
			}
		}
	}
}

func (s *Store) records(ctx context.Context) (all []store.Record, err error) {
	unlock, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	for _, p := range s.pages {
		for _, item := range p.items {
			all = append(all, store.Record{Item: item})
		}
	}
	for key, state := range s.sequences {
		all = append(all, store.Record{Item: store.Item{Key: key}, Sequence: &state})
	}
	return all, nil
}

// Load stores records as they are.
func (s *Store) Load(ctx context.Context, records []store.Record) error {
	unlock, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	for i := range records {
		r := &records[i]
		if r.Sequence != nil {
			s.sequences[r.Item.Key] = *r.Sequence
			continue
		}
		s.apply(store.Put(r.Item, store.Always), r.Item.Token)
	}
	return nil
}
