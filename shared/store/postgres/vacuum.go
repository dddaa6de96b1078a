package postgres

import (
	"context"
	"math/rand/v2"
	"time"
)

// A claim reads the head of a line, and there it passes over the index entries of all that was started since the table was vacuumed: with 150,000 of
// them it takes 0.4 ms more. Autovacuum looks at a table once a minute, whatever its parameters are. So under load whoever owns the table vacuums it
// more often: where as much is dead as autovacuum waits for, and never for more than a twentieth of the time.
const (
	lookEvery   = 10 * time.Second // at what is dead
	vacuumRest  = 20               // times as long as the last vacuum took
	vacuumLater = 5 * time.Minute  // at most, where vacuums remove little: a transaction that goes on keeps what it may see
	deadRows    = 20_000           // at least
)

// vacuum vacuums until Close, unless all else would wait for the one connection.
func (s *Store) vacuum() {
	if s.pool.Config().MaxConns == 1 {
		return
	}
	pause := lookEvery
	for {
		select {
		case <-s.life.Done():
			return
		case <-time.After(pause/2 + rand.N(pause)):
		}
		took, helped, err := s.vacuumOnce(s.life, deadRows, lookEvery)
		switch {
		case err != nil && s.life.Err() == nil:
			s.log.Debug("the table was not vacuumed; autovacuum does it", "schema", s.name, "error", err)
			pause = vacuumLater
		case helped:
			pause = max(lookEvery, vacuumRest*took)
		default:
			pause = max(vacuumRest*took, min(2*pause, vacuumLater))
		}
	}
}

// vacuumOnce vacuums the items if least of their rows are dead, and 2 % of them, and nobody has done so for a while, which takes a role that owns
// the table. helped says that there was no need, or that little is left.
func (s *Store) vacuumOnce(ctx context.Context, least int64, while time.Duration) (took time.Duration, helped bool, err error) {
	if needed, err := s.needsVacuum(ctx, least, while); err != nil || !needed {
		return 0, true, err
	}
	began := time.Now()
	if _, err := s.pool.Exec(ctx, "VACUUM (SKIP_LOCKED, TRUNCATE FALSE) "+s.schema+".items"); err != nil {
		return 0, false, err
	}
	needed, err := s.needsVacuum(ctx, least, 0)
	return time.Since(began), !needed, err
}

func (s *Store) needsVacuum(ctx context.Context, least int64, while time.Duration) (needed bool, err error) {
	err = s.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_stat_all_tables t JOIN pg_class c ON c.oid = t.relid
		WHERE t.schemaname = $1 AND t.relname = 'items' AND t.n_dead_tup >= greatest($2, t.n_live_tup / 50) AND pg_has_role(c.relowner, 'USAGE')
		AND coalesce(greatest(t.last_vacuum, t.last_autovacuum) <= now() - make_interval(secs => $3), true))`,
		s.name, least, while.Seconds()).Scan(&needed)
	return needed, err
}
