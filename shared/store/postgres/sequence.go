package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/millrace/millrace/shared/store"
)

// Reserve takes a ticket by one statement. Its commit waits for the disk: otherwise a database that restarts could give the same position,
// with a later id, to another process, while the first one is still about to write its slot.
func (s *Store) Reserve(ctx context.Context, key store.Key, ids int, now int64) (store.Ticket, error) {
	ticket := store.Ticket{Sends: 1}
	c, err := s.pool.Acquire(ctx)
	if err != nil {
		return ticket, s.readFailure(ctx, "reserve", err)
	}
	defer c.Release()
	ticket.Sent = s.now()
	q := &ticket.Sequence
	err = c.QueryRow(ctx, s.sql.reserve, places[key.Table], []byte(key.Partition), []byte(key.Sort), int64(ids), max(now, 1),
		store.ClockLead.Microseconds(), int64(store.MaxID)).Scan(&q.Position, &q.LastID, &q.FloorPosition, &q.FloorID)
	if errors.Is(err, pgx.ErrNoRows) {
		return store.Ticket{}, s.refusal(ctx, key, now)
	}
	if err != nil {
		return store.Ticket{}, s.readFailure(ctx, "reserve", err)
	}
	ticket.FirstID = ticket.LastID - int64(ids) + 1
	return ticket, nil
}

// refusal returns why there was no ticket.
func (s *Store) refusal(ctx context.Context, key store.Key, now int64) error {
	date, err := s.Date(ctx)
	if err != nil {
		return err
	}
	if err := store.CheckClock(now, date); err != nil {
		return fmt.Errorf("postgres: reserve %v: %w", key, err)
	}
	return fmt.Errorf("postgres: reserve %v: %w: no ids left", key, store.ErrClock)
}

// Sequence reads a sequencer by one statement.
func (s *Store) Sequence(ctx context.Context, key store.Key, _ bool) (q store.Sequence, err error) {
	err = s.pool.QueryRow(ctx, s.sql.sequence, places[key.Table], []byte(key.Partition), []byte(key.Sort)).
		Scan(&q.Position, &q.LastID, &q.FloorPosition, &q.FloorID)
	if errors.Is(err, pgx.ErrNoRows) {
		return store.Sequence{}, nil
	}
	return q, s.readFailure(ctx, "sequence", err)
}

// Raise moves a floor by one statement, whose condition closes the race between two sweeps.
func (s *Store) Raise(ctx context.Context, key store.Key, position, id int64) error {
	_, err := s.pool.Exec(ctx, s.sql.raise, places[key.Table], []byte(key.Partition), []byte(key.Sort), position, id)
	return s.readFailure(ctx, "raise", err)
}
