package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Footprint is what a table takes in the database, and what PostgreSQL has counted of it since its statistics were last reset.
type Footprint struct {
	Table         string
	Rows, Dead    int64 // as estimated: those that count, and those that were changed or deleted and are not cleaned away yet
	Bytes         int64 // of the rows, with large values, maps and all
	IndexBytes    int64
	Updates, HOT  int64 // updates of rows, and those of them that changed no index
	Autovacuums   int64
	Autovacuuming bool // one is under way
}

const footprints = `SELECT t.relname, t.n_live_tup, t.n_dead_tup, pg_table_size(t.relid), pg_indexes_size(t.relid),
	t.n_tup_upd, t.n_tup_hot_upd, t.autovacuum_count,
	EXISTS (SELECT FROM pg_stat_progress_vacuum p WHERE p.relid = t.relid AND p.datname = current_database())
	FROM pg_stat_user_tables t WHERE t.schemaname = $1 ORDER BY t.relname`

// Footprints returns what the tables take, and how many bytes the whole server has written to its log since it was made.
func (s *Store) Footprints(ctx context.Context) (tables []Footprint, log int64, err error) {
	rows, err := s.pool.Query(ctx, footprints, s.name)
	if err == nil {
		tables, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Footprint])
	}
	if err == nil {
		err = s.pool.QueryRow(ctx, "SELECT (pg_current_wal_lsn() - '0/0')::bigint").Scan(&log)
	}
	return tables, log, s.readFailure(ctx, "footprints", err)
}
