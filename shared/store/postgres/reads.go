package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/millrace/millrace/shared/groupcommit"
)

// reads lets statements that are asked for at the same moment share a round trip: a claim reads a handful of items and pages at once, and
// each round trip wakes a process of the database and a thread of this one.
type reads struct {
	pool  *pgxpool.Pool
	group *groupcommit.Group[*read]
}

// read is a statement that changes nothing.
type read struct {
	sql  string
	args []any
	take func(pgx.Rows) error // takes its rows, and may be called again if it has failed
	err  error
}

const (
	// smallPage is how many items a page may have whose statement shares a round trip: others wait for it.
	smallPage = 64

	// together is how many statements share a round trip at most.
	together = 16

	// readers is how many round trips of several statements are under way at most.
	readers = 8

	// sharedFor is how long a round trip may take that several callers share, since it does not end with any of them.
	sharedFor = 10 * time.Second
)

func newReads(pool *pgxpool.Pool) *reads {
	r := &reads{pool: pool}
	r.group = groupcommit.New(groupcommit.Options[*read]{
		Batch: func() func(*read) bool {
			n := 0
			return func(*read) bool { n++; return n <= together }
		},
		Write:   r.send,
		More:    func([]*read) bool { return true },
		Writers: readers,
	})
	return r
}

// do makes a read, perhaps together with others.
func (r *reads) do(ctx context.Context, one *read) error {
	if err := r.group.Do(ctx, one); err != nil {
		return err
	}
	return one.err
}

// alone makes a read that others do not wait for.
func (r *reads) alone(ctx context.Context, one *read) error {
	rows, err := r.pool.Query(ctx, one.sql, one.args...)
	if err != nil {
		return err
	}
	return one.take(rows)
}

// send makes reads in one round trip. What fails is read once more by itself: after a statement that has failed the database skips those
// behind it.
func (r *reads) send(ctx context.Context, all []*read) {
	if len(all) == 1 {
		all[0].err = r.alone(ctx, all[0])
		return
	}
	ctx, done := context.WithTimeout(ctx, sharedFor)
	defer done()
	var batch pgx.Batch
	for _, one := range all {
		batch.Queue(one.sql, one.args...)
	}
	results := r.pool.SendBatch(ctx, &batch)
	for _, one := range all {
		var rows pgx.Rows
		if rows, one.err = results.Query(); one.err == nil {
			one.err = one.take(rows)
		}
	}
	_ = results.Close() // each read has its own error
	for _, one := range all {
		if one.err != nil {
			one.err = r.alone(ctx, one)
		}
	}
}
