package memory

import (
	"context"
	"time"

	"github.com/millrace/millrace/shared/store"
)

// Reserve takes the next position and ids new ids.
func (s *Store) Reserve(ctx context.Context, key store.Key, ids int, now int64) (store.Ticket, error) {
	sent := time.Now()
	unlock, err := s.enter(ctx)
	if err != nil {
		return store.Ticket{}, err
	}
	defer unlock()
	last := s.sequences[key]
	if last.Leads(now) {
		if err := store.CheckClock(now, s.date()); err != nil {
			return store.Ticket{}, err
		}
	}
	ticket, err := last.Reserve(ids, now)
	if err != nil {
		return store.Ticket{}, err
	}
	ticket.Sent = sent
	s.sequences[key] = ticket.Sequence
	return ticket, nil
}

// Sequence reads a sequencer.
func (s *Store) Sequence(ctx context.Context, key store.Key, _ bool) (store.Sequence, error) {
	unlock, err := s.enter(ctx)
	if err != nil {
		return store.Sequence{}, err
	}
	defer unlock()
	return s.sequences[key], nil
}

// Raise moves the floor of a sequencer up.
func (s *Store) Raise(ctx context.Context, key store.Key, position, id int64) error {
	unlock, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if last := s.sequences[key]; last.FloorPosition < position {
		last.FloorPosition, last.FloorID = position, id
		s.sequences[key] = last
	}
	return nil
}
