package postgres

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/millrace/millrace/shared/store"
)

// layout is the version of the tables that this package makes and uses.
const layout = 1

//go:embed tables.sql
var tables string

//go:embed functions.sql
var functions string

// CreateTables makes the schema, the tables and the functions, as far as they are missing. It may be called again, and by several processes
// at once: one works, the others wait. Tables of another version it refuses.
func (s *Store) CreateTables(ctx context.Context) error {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", "millrace tables "+s.schema); err != nil {
			return err
		}
		switch found, err := s.layout(ctx, tx); {
		case err != nil:
			return err
		case found != 0:
			if err := s.expects(found); err != nil {
				return err
			}
			return s.addFunctions(ctx, tx)
		}
		for _, statement := range []string{
			"CREATE SCHEMA IF NOT EXISTS " + s.schema,
			s.named(tables),
			fmt.Sprintf("INSERT INTO %s.layout VALUES (%d)", s.schema, layout),
		} {
			if _, err := tx.Exec(ctx, statement); err != nil {
				return err
			}
		}
		return s.makeFunctions(ctx, tx)
	})
	return s.readFailure(ctx, "create tables", err)
}

// functionsVersion is that of the functions; each change of them raises it.
const functionsVersion = 4

// addFunctions makes the functions anew in a schema that was made by a program with older ones, which do if this role may not replace them.
func (s *Store) addFunctions(ctx context.Context, tx pgx.Tx) error {
	var found int // 0: the comment is of somebody else's, or there is none
	err := tx.QueryRow(ctx, "SELECT coalesce(substring(obj_description(to_regproc($1), 'pg_proc') from '^[0-9]{1,9}$')::int, 0)", s.schema+".write").Scan(&found)
	if err != nil || found >= functionsVersion {
		return err
	}
	err = pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { return s.makeFunctions(ctx, tx) })
	if errors.Is(verdict(err), store.ErrDenied) {
		s.log.Warn("the functions are those of an older program, and slower: call millrace tables as the role that owns them", "schema", s.name, "error", err)
		return nil
	}
	return err
}

// makeFunctions makes or replaces the functions.
func (s *Store) makeFunctions(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, s.named(functions)+fmt.Sprintf("COMMENT ON FUNCTION %s.write IS '%d'", s.schema, functionsVersion))
	return err
}

// named returns SQL with the names of the schema and of its channel.
func (s *Store) named(sql string) string {
	return strings.NewReplacer("{{schema}}", s.schema, "{{channel}}", s.channel()).Replace(sql)
}

// Ping returns nil if the tables are there, and of the version that this package uses.
func (s *Store) Ping(ctx context.Context) error {
	found, err := s.layout(ctx, s.pool)
	if err == nil {
		err = s.expects(found)
	}
	return s.readFailure(ctx, "ping", err)
}

// layout returns the version of the tables; 0 if there are none.
func (s *Store) layout(ctx context.Context, in interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}) (version int, err error) {
	var there bool
	if err := in.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", s.schema+".layout").Scan(&there); err != nil || !there {
		return 0, err
	}
	err = in.QueryRow(ctx, "SELECT version FROM "+s.schema+".layout").Scan(&version)
	return version, err
}

// expects returns an error unless the version of the tables is that of this package.
func (s *Store) expects(found int) error {
	switch found {
	case layout:
		return nil
	case 0:
		return fmt.Errorf("%w: there are no tables in the schema %s; run millrace tables", store.ErrUnavailable, s.schema)
	}
	return fmt.Errorf("%w: the tables in the schema %s have version %d, and this program uses %d", store.ErrUnavailable, s.schema, found, layout)
}
