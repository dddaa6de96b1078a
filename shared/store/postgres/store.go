package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/millrace/millrace/shared/pgurl"
	"github.com/millrace/millrace/shared/store"
)

// Options are the options of a Store.
type Options struct {
	// URL is a connection URL as libpq's, with a parameter schema of our own, by default millrace, and with those of the pool, such as
	// pool_max_conns, by default 16. What the URL leaves out, the environment's PG variables say. Required.
	URL string

	// Now is the clock that NotAfter is compared with; default time.Now.
	Now func() time.Time

	// Log receives failures of the cleaning; default slog.Default().
	Log *slog.Logger
}

// maxConnections is the size of the pool where the URL does not say it: more commits share a sync than there are processors.
const maxConnections = 16

// Store is a [store.Store] in PostgreSQL. Make one with [Open].
type Store struct {
	pool   *pgxpool.Pool
	reads  *reads
	name   string // of the schema
	schema string // as SQL
	sql    statements
	now    func() time.Time
	log    *slog.Logger

	noAdvance atomic.Bool // the tables were made by a program without [store.Advance]

	life  context.Context // ends with Close
	end   context.CancelFunc
	tasks sync.WaitGroup
	close sync.Once
}

var _ store.Store = (*Store)(nil)

// Open returns a Store, which connects when it is first used: [Store.Ping] says whether it can be.
func Open(ctx context.Context, o Options) (*Store, error) {
	config, schema, err := pgurl.Pool(o.URL)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w: %w", store.ErrInvalid, err)
	}
	if !strings.Contains(o.URL, "pool_max_conns") {
		config.MaxConns = maxConnections
	}
	s := &Store{name: schema, schema: pgx.Identifier{schema}.Sanitize(), now: o.Now, log: o.Log}
	s.sql = statementsFor(s.schema)
	if s.now == nil {
		s.now = time.Now
	}
	if s.log == nil {
		s.log = slog.Default()
	}
	if s.pool, err = pgxpool.NewWithConfig(context.WithoutCancel(ctx), config); err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	s.reads = &reads{pool: s.pool}
	s.life, s.end = context.WithCancel(context.WithoutCancel(ctx))
	s.tasks.Go(s.expire)
	s.tasks.Go(s.vacuum)
	return s, nil
}

// Exclusive returns false: processes share the database.
func (s *Store) Exclusive() bool { return false }

// Advances returns true, unless an older program has made the tables and millrace tables was not called since, or the role may not call the
// function.
func (s *Store) Advances() bool { return !s.noAdvance.Load() }

// MaxOps returns 600: a statement has no bound, but the sequencer is held while a write takes its ticket itself.
func (s *Store) MaxOps() int { return 600 }

// Date returns the database's clock.
func (s *Store) Date(ctx context.Context) (date time.Time, err error) {
	err = s.pool.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&date)
	return date, s.readFailure(ctx, "date", err)
}

// Close ends the cleaning, waits for calls under way, and closes the connections.
func (s *Store) Close() error {
	s.close.Do(func() {
		s.end()
		s.tasks.Wait()
		s.pool.Close()
	})
	return nil
}

// places are the numbers of the port's tables in the database's.
var places = map[store.Table]int16{store.Journal: 1, store.Work: 2, store.Definitions: 3}
