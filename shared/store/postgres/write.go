package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/millrace/millrace/shared/store"
)

// maxAttempts is how often a write is sent that other writes stood in the way of. The next one usually finds what they have written.
const maxAttempts = 4

// Write calls the database's function write.
//
// Price: one statement, and one commit unless a condition does not hold.
func (s *Store) Write(ctx context.Context, w store.Write) (err error) {
	request := prepare(w)
	for range maxAttempts {
		var conflict *store.Conflict
		conflict, err = s.send(ctx, w, request)
		switch moved := (*store.Moved)(nil); {
		case errors.As(err, &moved) || errors.Is(err, store.ErrNoAdvance):
			return err
		case conflict != nil && w.Mine(conflict):
			return nil
		case conflict != nil:
			return conflict
		case err == nil || !standsInTheWay(err):
			return s.writeFailure(ctx, err)
		}
	}
	return s.writeFailure(ctx, err)
}

// unchanged is the error of a request that was not sent, or has certainly changed nothing.
type unchanged struct{ error }

func (u unchanged) Unwrap() error { return u.error }

// send sends a write once.
func (s *Store) send(ctx context.Context, w store.Write, r *request) (*store.Conflict, error) {
	c, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, unchanged{err}
	}
	defer c.Release()
	if late := s.now().Sub(w.NotAfter); !w.NotAfter.IsZero() && late > 0 {
		return nil, fmt.Errorf("postgres: write: %w, by %v", store.ErrTooLate, late)
	}
	return s.apply(ctx, c, w, r)
}

func (s *Store) apply(ctx context.Context, c *pgxpool.Conn, w store.Write, r *request) (*store.Conflict, error) {
	if w.Advance != nil {
		return s.advance(ctx, c, &w, r)
	}
	if len(w.Ops) == 1 && r.kinds[0] <= putAbsent {
		return s.putOne(ctx, c, &w, r)
	}
	rows, err := c.Query(ctx, s.sql.write, r.counts, r.kinds, r.wanted, r.places, r.partitions, r.sorts, r.versions, r.contents, r.ends, w.Token)
	if err != nil {
		return nil, err
	}
	var f failures
	_, err = pgx.ForEachRow(rows, f.row(), func() error {
		f.add(&w, r)
		return nil
	})
	return f.conflict(), err
}

// advance is apply of a write that takes a ticket. The error is [*store.Moved] or [store.ErrNoAdvance] if it cannot.
func (s *Store) advance(ctx context.Context, c *pgxpool.Conn, w *store.Write, r *request) (*store.Conflict, error) {
	a := w.Advance
	rows, err := c.Query(ctx, s.sql.advance, places[a.Key.Table], []byte(a.Key.Partition), []byte(a.Key.Sort), a.From, a.FirstID, a.LastID,
		r.counts, r.kinds, r.wanted, r.places, r.partitions, r.sorts, r.versions, r.contents, r.ends, w.Token)
	if err != nil {
		return nil, s.advanceFailure(err)
	}
	var f failures
	var last *int64
	var moved error
	_, err = pgx.ForEachRow(rows, append(f.row(), &last), func() error {
		if f.op > 0 {
			f.add(w, r)
			return nil
		}
		if to := (store.Sequence{}); !f.found {
			if f.version != nil && last != nil {
				to.Position, to.LastID = *f.version, *last
			}
			moved = &store.Moved{To: to}
		}
		return nil
	})
	if err != nil {
		return nil, s.advanceFailure(err)
	}
	return f.conflict(), moved
}

// advanceFailure returns [store.ErrNoAdvance] where the function is not there since an older program has made the tables, or may not be called,
// and notes it.
func (s *Store) advanceFailure(err error) error {
	var said *pgconn.PgError
	if !errors.As(err, &said) || hints[said.Code] == "" {
		return err
	}
	if !s.noAdvance.Swap(true) {
		s.log.Warn("writes take two round trips instead of one: "+hints[said.Code], "schema", s.name, "error", said.Message)
	}
	return store.ErrNoAdvance
}

// hints say, by SQLSTATE, how the function advance can be called.
var hints = map[string]string{
	"42883": "an older program has made the tables; call millrace tables once more",
	"42501": "the role lacks EXECUTE on the function advance, or a right that it needs",
}

// failures are the rows of operations whose conditions do not hold.
type failures struct {
	op      int
	found   bool
	version *int64
	token   *string
	content

	failed []store.Failure
}

// row returns where the columns of a row go.
func (f *failures) row() []any {
	return []any{&f.op, &f.found, &f.version, &f.token, &f.value, &f.expires}
}

// add adds the row that was read.
func (f *failures) add(w *store.Write, r *request) {
	failure := store.Failure{Op: r.order[f.op-1]}
	if f.found {
		f.content.version, f.content.token = *f.version, *f.token
		item := f.item(w.Ops[failure.Op].Item.Key)
		failure.Found = &item
	}
	f.failed, f.content = append(f.failed, failure), content{}
}

// conflict returns what was added, nil if nothing was.
func (f *failures) conflict() *store.Conflict {
	if len(f.failed) == 0 {
		return nil
	}
	slices.SortFunc(f.failed, func(a, b store.Failure) int { return cmp.Compare(a.Op, b.Op) })
	return &store.Conflict{Failed: f.failed}
}

// putOne puts an item where there is none, or in place of a version: an append to a journal is no more, nor is a mark, so it spares the function.
func (s *Store) putOne(ctx context.Context, c *pgxpool.Conn, w *store.Write, r *request) (*store.Conflict, error) {
	sql, args := s.sql.putOne, []any{r.places[0], r.partitions[0], r.sorts[0], r.versions[0], w.Token, r.contents[0], r.ends[0]}
	if r.kinds[0] == replaceVersion {
		sql, args = s.sql.replaceOne, append(args, r.wanted[0])
	}
	done, err := c.Exec(ctx, sql, args...)
	if err != nil || done.RowsAffected() == 1 {
		return nil, err
	}
	var found content
	err = c.QueryRow(ctx, s.sql.get, r.places[0], r.partitions[0], r.sorts[0]).Scan(&found.version, &found.token, &found.value, &found.expires)
	switch item := found.item(w.Ops[0].Item.Key); {
	case err == nil:
		return &store.Conflict{Failed: []store.Failure{{Found: &item}}}, nil
	case errors.Is(err, pgx.ErrNoRows): // it is not there, or has been deleted since
		return &store.Conflict{Failed: []store.Failure{{}}}, nil
	}
	return nil, unchanged{err}
}

// request is a Write as the function's arguments: its operations, sorted by kind and key.
type request struct {
	order      []int   // the operations' places in the Write
	counts     []int32 // of the operations of each kind
	kinds      []int16
	wanted     []int64
	places     []int16
	partitions [][]byte
	sorts      [][]byte
	versions   []int64
	contents   [][]byte
	ends       []*time.Time
}

func prepare(w store.Write) *request {
	r := &request{order: make([]int, len(w.Ops)), counts: make([]int32, checkAbsent)}
	for n := range r.order {
		r.order[n] = n
	}
	slices.SortFunc(r.order, func(a, b int) int { return compare(&w.Ops[a], &w.Ops[b]) })
	for _, n := range r.order {
		r.add(&w.Ops[n])
	}
	return r
}

func compare(a, b *store.Op) int {
	j, k := &a.Item.Key, &b.Item.Key
	return cmp.Or(cmp.Compare(kind(a), kind(b)), cmp.Compare(places[j.Table], places[k.Table]),
		cmp.Compare(j.Partition, k.Partition), cmp.Compare(j.Sort, k.Sort))
}

// The kinds of operations that the function knows.
const (
	replaceVersion int16 = iota + 1
	putAbsent
	put
	deleteVersion
	deleteAny
	checkVersion
	checkAbsent
)

func kind(op *store.Op) int16 {
	_, version := op.Cond.Version()
	switch {
	case op.Kind == store.OpPut && version:
		return replaceVersion
	case op.Kind == store.OpPut && op.Cond.IsAbsent():
		return putAbsent
	case op.Kind == store.OpPut:
		return put
	case op.Cond.IsAbsent(): // deleting what must not be there is a check
		return checkAbsent
	case op.Kind == store.OpDelete && version:
		return deleteVersion
	case op.Kind == store.OpDelete:
		return deleteAny
	}
	return checkVersion
}

func (r *request) add(op *store.Op) {
	item := &op.Item
	value, ends := contents(item)
	wanted, _ := op.Cond.Version()
	r.counts[kind(op)-1]++
	r.kinds = append(r.kinds, kind(op))
	r.wanted = append(r.wanted, wanted)
	r.places = append(r.places, places[item.Key.Table])
	r.partitions = append(r.partitions, []byte(item.Key.Partition))
	r.sorts = append(r.sorts, []byte(item.Key.Sort))
	r.versions = append(r.versions, item.Version)
	r.contents = append(r.contents, value)
	r.ends = append(r.ends, ends)
}

// contents returns the value and the end of an item as columns.
func contents(item *store.Item) (value []byte, ends *time.Time) {
	if value = item.Value; value == nil {
		value = []byte{} // nil would be NULL
	}
	if !item.Expires.IsZero() {
		ends = &item.Expires
	}
	return value, ends
}

// removed is how many items a statement of [Store.Remove] deletes.
const removed = 1000

// Remove deletes 1,000 items by a statement, so that none of them holds up others for long.
func (s *Store) Remove(ctx context.Context, r store.Range) error {
	var to []byte
	if r.To != "" {
		to = []byte(r.To)
	}
	for {
		done, err := s.pool.Exec(ctx, s.sql.remove, places[r.Table], []byte(r.Partition), []byte(r.From), to, removed)
		if err != nil || done.RowsAffected() < removed {
			return s.readFailure(ctx, "remove", err)
		}
	}
}
