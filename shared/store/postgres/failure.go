package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/puddle/v2"

	"github.com/millrace/millrace/shared/store"
)

// readFailure returns the port's error for a request that is harmless to repeat. Its outcome does not matter, so every unknown error is
// [store.ErrUnavailable].
func (s *Store) readFailure(ctx context.Context, call string, err error) error {
	switch verdict := verdict(err); {
	case err == nil:
		return nil
	case errors.Is(err, puddle.ErrClosedPool) || s.life.Err() != nil:
		return store.ErrClosed
	case errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrClock) || errors.Is(err, store.ErrLocked):
		return fmt.Errorf("postgres: %s: %w", call, err)
	case verdict != nil:
		return s.failure(call, verdict, err)
	case ctx.Err() != nil:
		return fmt.Errorf("postgres: %s: %w", call, ctx.Err())
	}
	return s.failure(call, store.ErrUnavailable, err)
}

// writeFailure returns the port's error for a write. Only PostgreSQL's own word, or the certainty that nothing was sent, decides the
// outcome; all else is [store.ErrUnknown].
func (s *Store) writeFailure(ctx context.Context, err error) error {
	const call = "write"
	stayed := errors.As(err, &unchanged{}) || pgconn.SafeToRetry(err)
	switch verdict := verdict(err); {
	case err == nil || errors.Is(err, store.ErrTooLate):
		return err
	case errors.Is(err, puddle.ErrClosedPool):
		return store.ErrClosed
	case verdict != nil:
		return s.failure(call, verdict, err)
	case stayed && ctx.Err() != nil:
		return fmt.Errorf("postgres: %s: %w", call, ctx.Err())
	case stayed:
		return s.failure(call, store.ErrUnavailable, err)
	}
	return s.failure(call, store.ErrUnknown, err)
}

// failure hides the cause from errors.Is, which would find the context's error in it and take the request for unsent.
func (s *Store) failure(call string, verdict, err error) error {
	var said *pgconn.PgError
	if errors.As(err, &said) && missing[said.Code] {
		return fmt.Errorf("postgres: %s: %w: the tables are missing in the schema %s of this database; run millrace tables: %s", call, verdict, s.schema, said.Message)
	}
	if said != nil && forgotten[said.Code] {
		return fmt.Errorf("postgres: %s: %w: a pooler in transaction mode is before the database, and does not keep prepared statements; "+
			"add default_query_exec_mode=cache_describe to the URL: %s", call, verdict, said.Message)
	}
	return fmt.Errorf("postgres: %s: %w: %s", call, verdict, err.Error())
}

// forgotten are the codes of a prepared statement that is not there, or is there already, though only the driver prepares any: the
// connection is not the one on which it was prepared.
var forgotten = map[string]bool{"26000": true, "42P05": true}

// missing are the codes of what is not there.
var missing = map[string]bool{"42P01": true, "42883": true, "3F000": true}

// standsInTheWay reports whether a write was refused since others are writing the same, so that it can be sent again at once.
func standsInTheWay(err error) bool {
	var said *pgconn.PgError
	return errors.As(err, &said) && (said.Code == "40001" || said.Code == "40P01")
}

// verdict returns the port's error for PostgreSQL's; nil if there was none or it decides nothing. What it calls an error has changed
// nothing. After what ends the connection, such as a shutdown, a commit may have been done.
func verdict(err error) error {
	var said *pgconn.PgError
	switch {
	case !errors.As(err, &said) || said.Severity != "ERROR" && said.SeverityUnlocalized != "ERROR":
		return nil
	case said.Code == "42501":
		return store.ErrDenied
	case busy[said.Code] || strings.HasPrefix(said.Code, "55"):
		return store.ErrBusy
	case strings.HasPrefix(said.Code, "54") || strings.HasPrefix(said.Code, "22"):
		return store.ErrInvalid // program_limit_exceeded, data_exception
	}
	return store.ErrUnavailable
}

// busy are the codes of errors after which the same request may succeed: serialization failure, deadlock, out of memory (of locks, for
// example), and the end of a statement's time.
var busy = map[string]bool{"40001": true, "40P01": true, "53200": true, "57014": true}
