package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/millrace/millrace/shared/store"
)

var _ store.Portable = (*Store)(nil)

// Records reads page after page, in the order of the keys. It returns [store.ErrLocked] if a server is connected, as far as this user is
// shown it, or if the outbox has entries that no server has delivered: they are nowhere else yet.
func (s *Store) Records(ctx context.Context) iter.Seq2[*store.Record, error] {
	return func(yield func(*store.Record, error) bool) {
		err := s.demandRest(ctx)
		on := true
		for _, read := range []func(context.Context, func(*store.Record) bool) (bool, error){s.allItems, s.allSequencers} {
			if err == nil && on {
				on, err = read(ctx, func(r *store.Record) bool { return yield(r, nil) })
			}
		}
		if err != nil {
			yield(nil, s.readFailure(ctx, "read all", err))
		}
	}
}

// A server that has just ended is shown for some moments more.
const (
	restLooks = 20
	restPause = 100 * time.Millisecond
)

// demandRest returns an error if something is known to go on.
func (s *Store) demandRest(ctx context.Context) (err error) {
	for range restLooks {
		if err = s.atRest(ctx); !errors.Is(err, store.ErrLocked) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(restPause):
		}
	}
	return err
}

func (s *Store) atRest(ctx context.Context) error {
	var servers, entries int
	err := s.pool.QueryRow(ctx, "SELECT (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query = $1), "+
		"(SELECT count(*) FROM "+s.schema+".outbox WHERE failed IS NULL)", s.listen()).Scan(&servers, &entries)
	switch {
	case err != nil:
		return err
	case servers > 0:
		return fmt.Errorf("%w: servers that are connected to the schema %s: %d", store.ErrLocked, s.schema, servers)
	case entries > 0:
		return fmt.Errorf("%w: entries of its outbox that no server has delivered yet: %d", store.ErrLocked, entries)
	}
	return nil
}

// place is where reading goes on.
type place struct {
	table           int16
	partition, sort []byte
}

func (p *place) key() store.Key {
	key := store.Key{Partition: string(p.partition), Sort: string(p.sort)}
	for table, number := range places {
		if number == p.table {
			key.Table = table
		}
	}
	return key
}

func (s *Store) allItems(ctx context.Context, yield func(*store.Record) bool) (on bool, err error) {
	var c content
	return s.all(ctx, columns, "items", []any{&c.version, &c.token, &c.value, &c.expires}, func(key store.Key) bool {
		r := &store.Record{Item: c.item(key)}
		c = content{}
		return yield(r)
	})
}

func (s *Store) allSequencers(ctx context.Context, yield func(*store.Record) bool) (on bool, err error) {
	var q store.Sequence
	fields := []any{&q.Position, &q.LastID, &q.FloorPosition, &q.FloorID}
	return s.all(ctx, "position, last_id, floor_position, floor_id", "sequencers", fields, func(key store.Key) bool {
		state := q
		return yield(&store.Record{Item: store.Item{Key: key}, Sequence: &state})
	})
}

// all reads the rows of a table in pages, and calls yield after each was scanned into the fields, until that returns false.
func (s *Store) all(ctx context.Context, names, table string, fields []any, yield func(store.Key) bool) (on bool, err error) {
	at := place{partition: []byte{}, sort: []byte{}}
	text := "SELECT place, partition, sort, " + names + " FROM " + s.schema + "." + table +
		" WHERE (place, partition, sort) > ($1, $2, $3) ORDER BY place, partition, sort LIMIT $4"
	for {
		rows, err := s.pool.Query(ctx, text, at.table, at.partition, at.sort, maxPage)
		if err != nil {
			return false, err
		}
		found, on := 0, true
		_, err = pgx.ForEachRow(rows, append([]any{&at.table, &at.partition, &at.sort}, fields...), func() error {
			found++
			on = on && yield(at.key())
			return nil
		})
		if err != nil || !on || found < maxPage {
			return on, err
		}
	}
}

// Load stores the items by one statement, and the sequencers by another.
func (s *Store) Load(ctx context.Context, records []store.Record) error {
	var items, sequencers loading
	for i := range records {
		if r := &records[i]; r.Sequence == nil {
			items.addItem(&r.Item)
		} else {
			sequencers.addSequencer(r.Item.Key, *r.Sequence)
		}
	}
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, s.sql.loadItems, items.places, items.partitions, items.sorts, items.numbers[0], items.tokens, items.values, items.ends)
		if err != nil || len(sequencers.places) == 0 {
			return err
		}
		n := &sequencers.numbers
		_, err = tx.Exec(ctx, s.sql.loadSequencers, sequencers.places, sequencers.partitions, sequencers.sorts, n[0], n[1], n[2], n[3])
		return err
	})
	return s.readFailure(ctx, "load", err)
}

// loading is the columns of rows.
type loading struct {
	places            []int16
	partitions, sorts [][]byte
	numbers           [4][]int64
	tokens            []string
	values            [][]byte
	ends              []*time.Time
}

func (l *loading) addKey(key store.Key) {
	l.places = append(l.places, places[key.Table])
	l.partitions, l.sorts = append(l.partitions, []byte(key.Partition)), append(l.sorts, []byte(key.Sort))
}

func (l *loading) addItem(item *store.Item) {
	l.addKey(item.Key)
	l.numbers[0] = append(l.numbers[0], item.Version)
	value, ends := contents(item)
	l.tokens, l.values, l.ends = append(l.tokens, item.Token), append(l.values, value), append(l.ends, ends)
}

func (l *loading) addSequencer(key store.Key, state store.Sequence) {
	l.addKey(key)
	for i, n := range []int64{state.Position, state.LastID, state.FloorPosition, state.FloorID} {
		l.numbers[i] = append(l.numbers[i], n)
	}
}
