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

// moved returns where the sequencer of an Advance stands, if that is not where it must; otherwise nil.
func (s *Store) moved(a *store.Advance) error {
	if a == nil {
		return nil
	}
	if at := s.sequences[a.Key]; at.Position != a.From || at.LastID >= a.FirstID {
		return &store.Moved{To: at}
	}
	return nil
}

func (s *Store) advance(a *store.Advance) {
	at := s.sequences[a.Key]
	at.Position, at.LastID = a.From+1, a.LastID
	s.sequences[a.Key] = at
}

// useUp uses up the ids of an Advance that is refused, as a store may.
func (s *Store) useUp(a *store.Advance) {
	if a != nil {
		at := s.sequences[a.Key]
		at.LastID = a.LastID
		s.sequences[a.Key] = at
	}
}
