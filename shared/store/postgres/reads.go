package postgres

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/millrace/millrace/shared/store"
)

// reads lets statements that are asked for at the same moment share a round trip: a claim reads a handful of items and pages at once, and
// each round trip wakes a process of the database and a thread of this one.
type reads struct {
	pool *pgxpool.Pool

	mu        sync.Mutex
	waiting   []*read
	gathering bool // a caller is about to send what waits
}

// read is a statement that changes nothing.
type read struct {
	sql  string
	args []any
	take func(pgx.Rows) error // takes its rows, and may be called again if it has failed
	err  error
	done chan struct{} // closed when it is made, perhaps by another caller
}

const (
	// smallPage is how many items a page may have whose statement shares a round trip: others wait for it.
	smallPage = 64

	// together is how many statements share a round trip at most.
	together = 16

	// company is how long a read waits at most for others that are announced with it: less than a round trip takes.
	company = 100 * time.Microsecond

	// sharedFor is how long a round trip may take that several callers share, since it does not end with any of them.
	sharedFor = 10 * time.Second
)

// do makes a read, perhaps together with others.
func (r *reads) do(ctx context.Context, one *read) error {
	one.done, one.err = make(chan struct{}), errUnread
	left := store.Company(ctx)
	r.mu.Lock()
	r.waiting = append(r.waiting, one)
	leads := !r.gathering
	r.gathering = true
	r.mu.Unlock()
	if left != nil {
		left.Add(-1)
	}
	if leads {
		r.gather(left)
		all := r.gathered()
		if len(all) == 1 {
			return r.alone(ctx, one)
		}
		for batch := range slices.Chunk(all, together) {
			go r.send(context.WithoutCancel(ctx), batch)
		}
	}
	select {
	case <-one.done:
		return one.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// errUnread is the error of a read that was not made.
var errUnread = errors.New("postgres: the statement was not sent")

// gathered takes the reads that wait.
func (r *reads) gathered() []*read {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.waiting
	r.waiting, r.gathering = nil, false
	return all
}

// gather lets other goroutines add reads, and waits for those that are announced.
func (r *reads) gather(left *atomic.Int64) {
	if left == nil {
		runtime.Gosched()
		return
	}
	for began := time.Now(); left.Load() > 0 && time.Since(began) < company; {
		runtime.Gosched()
	}
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
	defer func() {
		for _, one := range all {
			close(one.done)
		}
	}()
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
