package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// Entry is what a transaction of another program has asked for, see the functions add_job and emit in tables.sql.
type Entry struct {
	Key  string // the same whenever the entry is delivered again, and of no other entry
	Call string // job or event
	Body []byte // JSON: a job, or an array of events
}

// Refused is the error of an entry that will never be taken. It stays in the outbox, with the reason.
type Refused struct{ Reason string }

// Error returns the reason.
func (r *Refused) Error() string { return r.Reason }

const (
	outboxBatch = 100             // entries taken at once
	outboxLanes = 16              // jobs delivered side by side
	outboxLook  = 5 * time.Second // how often it is looked for entries of which there was no notification
)

// Drain delivers the entries of the outbox until ctx ends, those of events one after the other in the order of their numbers. An entry is
// removed once deliver returns nil. It is delivered again after any error but [Refused], and after this process has died before the
// removal: deliver must take an entry's key for the sign that it is the same.
func (s *Store) Drain(ctx context.Context, deliver func(ctx context.Context, e Entry) error) {
	for failing := false; ctx.Err() == nil; {
		err := s.drain(ctx, deliver)
		if ctx.Err() != nil {
			return
		}
		if !failing {
			s.log.Warn("the outbox is not delivered; it is tried again", "error", err)
		}
		failing = true
		select {
		case <-ctx.Done():
		case <-time.After(outboxLook):
		}
	}
}

// drain delivers until something fails.
func (s *Store) drain(ctx context.Context, deliver func(ctx context.Context, e Entry) error) error {
	c, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	own := c.Hijack() // it listens for as long as it lives
	defer func() { _ = own.Close(context.WithoutCancel(ctx)) }()
	if _, err := own.Exec(ctx, s.listen()); err != nil {
		return err
	}
	for {
		for {
			taken, err := s.deliver(ctx, deliver)
			if err != nil {
				return err
			}
			if taken < outboxBatch {
				break
			}
		}
		waiting, cancel := context.WithTimeout(ctx, outboxLook)
		err := own.PgConn().WaitForNotification(waiting)
		cancel()
		if err != nil && (waiting.Err() == nil || ctx.Err() != nil) {
			return err
		}
	}
}

// channel is where the functions of the outbox notify.
func (s *Store) channel() string { return s.name + "_outbox" }

// listen is the statement by which a server hears of entries, and the last one of a connection that each server has.
func (s *Store) listen() string { return "LISTEN " + pgx.Identifier{s.channel()}.Sanitize() }

// deliver takes a batch, and returns how many entries there were. Other processes take others meanwhile.
func (s *Store) deliver(ctx context.Context, deliver func(ctx context.Context, e Entry) error) (taken int, err error) {
	var again error // of an entry that is to be delivered again
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, "SELECT id, call, body FROM "+s.schema+".outbox WHERE failed IS NULL ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED", outboxBatch)
		if err != nil {
			return err
		}
		entries, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (e outboxEntry, err error) {
			err = row.Scan(&e.id, &e.Call, &e.Body)
			e.Key = fmt.Sprintf("outbox/%s/%d", s.name, e.id)
			return e, err
		})
		if err != nil {
			return err
		}
		taken = len(entries)
		all(ctx, entries, deliver)
		again, err = s.settle(ctx, tx, entries)
		return err
	})
	return taken, errors.Join(err, again)
}

type outboxEntry struct {
	Entry
	id  int64
	err error
}

// all delivers jobs side by side, and events one after the other.
func all(ctx context.Context, entries []outboxEntry, deliver func(ctx context.Context, e Entry) error) {
	var group sync.WaitGroup
	lanes := make(chan struct{}, outboxLanes)
	group.Go(func() {
		for n := range entries {
			if e := &entries[n]; e.Call != "job" {
				if e.err = deliver(ctx, e.Entry); e.err != nil && !errors.As(e.err, new(*Refused)) {
					stop(entries[n+1:], e.err) // what follows is not to overtake it
					return
				}
			}
		}
	})
	for n := range entries {
		if e := &entries[n]; e.Call == "job" {
			lanes <- struct{}{}
			group.Go(func() {
				e.err = deliver(ctx, e.Entry)
				<-lanes
			})
		}
	}
	group.Wait()
}

// stop marks the events among entries as not delivered.
func stop(entries []outboxEntry, err error) {
	for n := range entries {
		if entries[n].Call != "job" {
			entries[n].err = err
		}
	}
}

// settle removes what was delivered, and notes what was refused; again is the error of an entry that is neither.
func (s *Store) settle(ctx context.Context, tx pgx.Tx, entries []outboxEntry) (again, err error) {
	var done []int64
	for _, e := range entries {
		var refused *Refused
		switch {
		case e.err == nil:
			done = append(done, e.id)
		case errors.As(e.err, &refused):
			s.log.Warn("an entry of the outbox was refused", "id", e.id, "reason", refused.Reason)
			if _, err := tx.Exec(ctx, "UPDATE "+s.schema+".outbox SET failed = $2 WHERE id = $1", e.id, refused.Reason); err != nil {
				return nil, err
			}
		default:
			again = e.err
		}
	}
	_, err = tx.Exec(ctx, "DELETE FROM "+s.schema+".outbox WHERE id = ANY($1)", done)
	return again, err
}
