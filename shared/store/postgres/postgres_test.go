package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/postgres"
	"github.com/millrace/millrace/shared/store/storetest"
	pg "github.com/millrace/millrace/tests/postgres"
)

func TestMain(m *testing.M) { os.Exit(pg.Run(m)) }

func TestConformance(t *testing.T) {
	t.Parallel()
	url := pg.Database(t)
	create(t, url)
	storetest.Run(t, func(t *testing.T) store.Store { return open(t, url+"&pool_max_conns=4") }, storetest.Capabilities{Advances: true})
}

func TestReopen(t *testing.T) {
	t.Parallel()
	url := pg.Database(t)
	create(t, url)
	storetest.Reopen(t, func(t *testing.T) store.Store { return open(t, url) })
}

func TestPortable(t *testing.T) {
	t.Parallel()
	storetest.Portable(t, func(t *testing.T) store.Portable {
		url := pg.Database(t)
		create(t, url)
		return open(t, url)
	})
}

// What a server is connected to, and what has entries in its outbox, is in use.
func TestRecordsOfWhatIsInUse(t *testing.T) {
	t.Parallel()
	url := pg.Database(t)
	create(t, url)
	s := open(t, url)
	locked := func(want string) {
		t.Helper()
		for _, err := range s.Records(t.Context()) {
			if !errors.Is(err, store.ErrLocked) || !strings.Contains(err.Error(), want) {
				t.Errorf("Records = %v, want %v with %q", err, store.ErrLocked, want)
			}
			return
		}
		t.Errorf("Records returns nothing, want %v", store.ErrLocked)
	}
	c := connected(t, url)
	if _, err := c.Exec(t.Context(), `SELECT millrace.emit('{"TYPE":"A"}')`); err != nil {
		t.Fatal(err)
	}
	locked("entries of its outbox that no server has delivered yet: 1")
	ctx, stop := context.WithCancel(t.Context())
	delivered, ended := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(ended)
		s.Drain(ctx, func(_ context.Context, e postgres.Entry) error { delivered <- e.Call; return nil })
	}()
	<-delivered
	locked("servers that are connected to the schema")
	for left := 1; left > 0; { // the entry is removed once it is delivered
		if err := c.QueryRow(t.Context(), "SELECT count(*) FROM millrace.outbox").Scan(&left); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	<-ended
	for r, err := range s.Records(t.Context()) {
		t.Errorf("Records of what nobody uses = %v, %v, want none", r, err)
	}
}

// Several processes make the tables at once, in two schemas of one database.
func TestCreateTables(t *testing.T) {
	t.Parallel()
	url := pg.Database(t)
	if err := open(t, url).Ping(t.Context()); !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "millrace tables") {
		t.Errorf("Ping without tables = %v, want the advice to make them", err)
	}
	var group sync.WaitGroup
	for n := range 6 {
		group.Go(func() { create(t, url+[]string{"", "&schema=other"}[n%2]) })
	}
	group.Wait()
	first, other := open(t, url), open(t, url+"&schema=other")
	key := store.Key{Table: store.Work, Partition: "p", Sort: "s"}
	write := store.Write{Token: "t", Ops: []store.Op{store.Put(store.Item{Key: key, Version: 1}, store.Absent)}}
	for _, s := range []*postgres.Store{first, other} {
		if err := errors.Join(s.Ping(t.Context()), s.Write(t.Context(), write)); err != nil {
			t.Error(err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"postgres:d":                      "want postgres://",
		"postgres://h/d?schema=A":         "schema is",
		"postgres://h/d?pool_max_conns=x": "pool_max_conns",
	} {
		if _, err := postgres.Open(t.Context(), postgres.Options{URL: url}); !errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("Open(%s) = %v, want an error with %q", url, err, want)
		}
	}
}

func create(t *testing.T, url string) {
	t.Helper()
	if err := open(t, url).CreateTables(t.Context()); err != nil {
		t.Error(err)
	}
}

func open(t *testing.T, url string) *postgres.Store {
	t.Helper()
	return opened(t, url)
}

func opened(t testing.TB, url string) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(context.Background(), postgres.Options{URL: url, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// A position is given once, also where the database stops right after it was given, without writing what it has in memory: whoever has
// it may still be about to write.
func TestTicketsOutliveACrash(t *testing.T) {
	t.Parallel()
	own := pg.Own(t)
	url := own.URL("postgres")
	create(t, url)
	s := open(t, url)
	key := store.Key{Table: store.Journal, Partition: "p", Sort: "s"}
	if err := own.Execute("CHECKPOINT"); err != nil {
		t.Fatal(err)
	}
	for want := range int64(3) {
		ticket, err := s.Reserve(t.Context(), key, 1, 1)
		if err != nil || ticket.Position != want+1 {
			t.Fatalf("ticket = %+v, %v, want the position %d", ticket, err, want+1)
		}
		own.Crash()
		if err := own.Start(); err != nil {
			t.Fatal(err)
		}
		s = open(t, url)
	}
}

// Reads that are asked for at one moment share round trips, and each has its own result: also while connections are cut.
func TestReadsSideBySide(t *testing.T) {
	t.Parallel()
	url := pg.Database(t)
	create(t, url)
	s := open(t, url+"&application_name=cut")
	const items = 40
	at := func(n int) store.Key {
		return store.Key{Table: store.Work, Partition: fmt.Sprint("p", n%4), Sort: fmt.Sprintf("%03d", n)}
	}
	for n := range items {
		write := store.Write{Token: fmt.Sprint("t", n), Ops: []store.Op{store.Put(store.Item{Key: at(n), Version: int64(n + 1)}, store.Absent)}}
		if err := s.Write(t.Context(), write); err != nil {
			t.Fatal(err)
		}
	}
	c := connected(t, url)
	ctx := store.WithCompany(t.Context(), 3*items)
	for round := range 30 {
		if round%3 == 2 {
			if _, err := c.Exec(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'cut'"); err != nil {
				t.Fatal(err)
			}
		}
		var group sync.WaitGroup
		for n := range items {
			group.Go(func() {
				found, err := s.Get(ctx, at(n), at((n+1)%items))
				switch {
				case errors.Is(err, store.ErrUnavailable):
				case err != nil || found[0] == nil || found[0].Version != int64(n+1) || found[1].Version != int64((n+1)%items+1):
					t.Errorf("Get(%d) = %v, %v", n, found, err)
				}
			})
			group.Go(func() {
				one, err := s.Get(ctx, at(n))
				switch {
				case errors.Is(err, store.ErrUnavailable):
				case err != nil || one[0] == nil || one[0].Version != int64(n+1):
					t.Errorf("Get(%d) alone = %v, %v", n, one, err)
				}
			})
			group.Go(func() {
				page, err := s.Query(ctx, store.Range{Table: store.Work, Partition: at(n).Partition, From: at(n).Sort, Limit: 1})
				switch {
				case errors.Is(err, store.ErrUnavailable):
				case err != nil || len(page.Items) != 1 || page.Items[0].Version != int64(n+1):
					t.Errorf("Query(%d) = %v, %v", n, page, err)
				}
			})
		}
		group.Wait()
	}
}

// A role that may call all but the function that takes tickets reserves them.
func TestARoleWithoutAdvance(t *testing.T) {
	t.Parallel()
	as := role(t, "reserver", "REVOKE EXECUTE ON FUNCTION millrace.advance FROM PUBLIC")
	s, key := open(t, as), store.Key{Table: store.Work, Partition: "p", Sort: "s"}
	ticket, err := s.Reserve(t.Context(), key, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Write(t.Context(), taking(key, ticket)); !errors.Is(err, store.ErrNoAdvance) || s.Advances() {
		t.Errorf("Write = %v, Advances = %v, want ErrNoAdvance and false", err, s.Advances())
	}
}

// A role that may not replace the functions of an older program uses them.
func TestARoleThatDoesNotOwnTheFunctions(t *testing.T) {
	t.Parallel()
	writer := role(t, "writer", "COMMENT ON FUNCTION millrace.write IS '1'")
	create(t, writer)
	key := store.Key{Table: store.Work, Partition: "p", Sort: "s"}
	w := store.Write{Token: "t", Ops: []store.Op{store.Put(store.Item{Key: key, Version: 1}, store.Always)}}
	if err := open(t, writer).Write(t.Context(), w); err != nil {
		t.Errorf("Write = %v", err)
	}
}

// role makes a database with tables, and a role that may use them as far as its owner says, and returns the URL for it.
func role(t *testing.T, name, says string) string {
	t.Helper()
	owner := pg.Database(t)
	create(t, owner)
	return lesser(t, owner, name, says)
}

// lesser is role of a database that there is.
func lesser(t *testing.T, owner, name, says string) string {
	t.Helper()
	c := connected(t, owner)
	t.Cleanup(func() { _, _ = c.Exec(context.Background(), "DROP OWNED BY "+name+"; DROP ROLE "+name) })
	if _, err := c.Exec(t.Context(), "CREATE ROLE "+name+" LOGIN; GRANT USAGE ON SCHEMA millrace TO "+name+
		"; GRANT ALL ON ALL TABLES IN SCHEMA millrace TO "+name+"; "+says); err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(owner)
	if err != nil {
		t.Fatal(err)
	}
	at.User = url.User(name)
	return at.String()
}

// taking returns a write that takes the ticket after another itself.
func taking(key store.Key, before store.Ticket) store.Write {
	return store.Write{
		Token: "t", Ops: []store.Op{store.Put(store.Item{Key: key, Version: 1}, store.Absent)},
		Advance: &store.Advance{Key: key, From: before.Position, FirstID: before.LastID + 1, LastID: before.LastID + 1},
	}
}

// Writes of few operations and of many take their locks in one order, what is to stay before what is to go, so that they wait for each other
// and do not meet in a deadlock.
func TestWritesLockInOneOrder(t *testing.T) {
	t.Parallel()
	url := pg.Database(t)
	create(t, url)
	s := open(t, url+"&pool_max_conns=4")
	for _, n := range []int{1, 12} {
		key := func(what string, i int) store.Key {
			return store.Key{Table: store.Work, Partition: fmt.Sprint(what, n), Sort: fmt.Sprint(i)}
		}
		var puts, ops []store.Op
		for i := range n {
			for _, what := range []string{"stays", "goes"} {
				puts = append(puts, store.Put(store.Item{Key: key(what, i), Version: 1}, store.Absent))
			}
			ops = append(ops, store.Delete(key("goes", i), store.VersionIs(1)), store.Check(key("stays", i), store.VersionIs(1)))
		}
		if err := s.Write(t.Context(), store.Write{Token: fmt.Sprint("puts", n), Ops: puts}); err != nil {
			t.Fatal(err)
		}
		holder, looker := connected(t, url), connected(t, url)
		tx, err := holder.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		lock := "SELECT FROM millrace.items WHERE partition = $1 AND sort = $2 FOR UPDATE "
		if _, err := tx.Exec(t.Context(), lock, []byte(key("stays", 0).Partition), []byte("0")); err != nil {
			t.Fatal(err)
		}
		written := make(chan error, 1)
		go func() { written <- s.Write(t.Context(), store.Write{Token: fmt.Sprint("ops", n), Ops: ops}) }()
		for waiting := 0; waiting == 0; {
			err := looker.QueryRow(t.Context(), "SELECT count(*) FROM pg_locks WHERE NOT granted AND pid IN "+
				"(SELECT pid FROM pg_stat_activity WHERE datname = current_database())").Scan(&waiting)
			if err != nil {
				t.Fatal(err)
			}
		}
		if _, err := looker.Exec(t.Context(), lock+"NOWAIT", []byte(key("goes", 0).Partition), []byte("0")); err != nil {
			t.Errorf("a write of %d operations that waits for an item that stays holds one that goes: %v", len(ops), err)
		}
		if err := errors.Join(tx.Rollback(t.Context()), <-written); err != nil {
			t.Errorf("Write = %v", err)
		}
	}
}

// connected returns a connection of the test's own.
func connected(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// Tables of an older program do for this one: it reserves its tickets until the tables have the function that takes them.
func TestTablesWithoutAdvance(t *testing.T) {
	t.Parallel()
	url := pg.Database(t)
	create(t, url)
	c := connected(t, url)
	if _, err := c.Exec(t.Context(), "DROP FUNCTION millrace.advance; COMMENT ON FUNCTION millrace.write IS NULL"); err != nil {
		t.Fatal(err)
	}
	s, key := open(t, url), store.Key{Table: store.Work, Partition: "p", Sort: "s"}
	ticket, err := s.Reserve(t.Context(), key, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	write := taking(key, ticket)
	if err := s.Write(t.Context(), write); !errors.Is(err, store.ErrNoAdvance) || s.Advances() {
		t.Errorf("Write = %v, Advances = %v, want ErrNoAdvance and false", err, s.Advances())
	}
	create(t, url)
	s = open(t, url)
	if err := s.Write(t.Context(), write); err != nil || !s.Advances() {
		t.Errorf("Write with the newest functions = %v, Advances = %v, want success and true", err, s.Advances())
	}
}
