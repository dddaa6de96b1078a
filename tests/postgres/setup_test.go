package postgres_test

import (
	"context"
	"testing"

	"github.com/millrace/millrace/shared/definition"
	pgstore "github.com/millrace/millrace/shared/store/postgres"
	"github.com/millrace/millrace/tests/postgres"
)

// declared are definitions that never change.
type declared struct{ set *definition.Set }

func (d declared) Current(context.Context) (*definition.Set, error) { return d.set, nil }

// tables makes the tables of a new database, and returns its URL.
func tables(t *testing.T) (url string) {
	t.Helper()
	url = postgres.Database(t)
	s, err := pgstore.Open(t.Context(), pgstore.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.CreateTables(t.Context()); err != nil {
		t.Fatal(err)
	}
	return url
}
