package postgres_test

import (
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/millrace/millrace/tests/postgres"
	"github.com/millrace/millrace/tests/process"
)

func TestMain(m *testing.M) {
	os.Exit(process.RunBuilt(func() int { return postgres.Run(m) }))
}

func TestDatabase(t *testing.T) {
	t.Parallel()
	first, second := postgres.Database(t), postgres.Database(t)
	if first == second {
		t.Errorf("Database = %s twice, want a database for each test", first)
	}
	execute(t, first, "CREATE TABLE a ()")
	execute(t, second, "CREATE TABLE a ()")
}

func TestCrash(t *testing.T) {
	t.Parallel()
	own := postgres.Own(t)
	execute(t, own.URL("postgres"), "CREATE TABLE a ()")
	own.Crash()
	if c, err := pgx.Connect(t.Context(), own.URL("postgres")); err == nil {
		c.Close(t.Context())
		t.Error("it accepts connections after Crash")
	}
	if err := own.Start(); err != nil {
		t.Fatal(err)
	}
	execute(t, own.URL("postgres"), "DROP TABLE a")
}

func execute(t *testing.T, url, statement string) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	if _, err := c.Exec(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}
