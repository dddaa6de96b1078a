package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/client/pgoutbox"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/tests/postgres"
	"github.com/millrace/millrace/tests/process"
)

// database returns the URL of a store with tables of its own, made as a user does.
func database(t *testing.T) string {
	t.Helper()
	url := postgres.Database(t)
	makeTables(t, url)
	return url
}

func makeTables(t *testing.T, url string) {
	t.Helper()
	if r := command(t, nil, "", "tables", "--store", url); r.status != 0 || !strings.Contains(r.out, "can be used") {
		t.Fatalf("millrace tables: %+v", r)
	}
}

// TestOnPostgreSQL: what works on the other stores works on this one.
func TestOnPostgreSQL(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]func(t *testing.T, url string){
		"an order walks":       func(t *testing.T, url string) { walks(t, url) },
		"a fork is joined":     func(t *testing.T, url string) { joins(t, 20, 1, url) },
		"causes of a task":     func(t *testing.T, url string) { causesOfATask(t, serve(t, url, declared(t, failing))) },
		"delays":               func(t *testing.T, url string) { delayed(t, serve(t, url, declared(t, delays))) },
		"a fleet":              func(t *testing.T, url string) { sail(t, serve(t, url, declared(t, remoteHandler)), 300) },
		"two servers share it": func(t *testing.T, url string) { twoShare(t, url, withEnv("MILLRACE_WORKERS=2")) },
		"the same events as embedded": func(t *testing.T, url string) {
			one, other := story(t, serve(t, embedded(t), declared(t, eventful))), story(t, serve(t, url, declared(t, eventful)))
			if diff := cmp.Diff(one, other); diff != "" {
				t.Errorf("the events differ (-embedded +PostgreSQL):\n%s", diff)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "delays" && testing.Short() {
				t.Skip("left out of -short: takes 20 seconds")
			}
			run(t, database(t))
		})
	}
}

func withEnv(variables ...string) func(*process.Server) {
	return func(s *process.Server) { s.Env = append(s.Env, variables...) }
}

// TestPostgreSQLFails: connections are ended, the database stops without writing what it has in memory, the server is killed, all under
// load: every acknowledged event is there once and in order, and every acknowledged task ends once.
func TestPostgreSQLFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		declares string
		load     func(t *testing.T, s *process.Server, rounds int, breaks func())
	}{"events": {"", underLoad}, "tasks": {killed, whileTasksRun}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own := postgres.Own(t)
			url := own.URL("postgres")
			makeTables(t, url)
			s := serve(t, url, declared(t, c.declares))
			round := 0
			c.load(t, s, 6, func() {
				var err error
				switch round++; round % 3 {
				case 0:
					if err = s.Kill(); err == nil {
						err = s.Start(t.Context())
					}
				case 1:
					err = own.DropConnections()
				case 2:
					own.Crash()
					err = own.Start()
				}
				if err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// TestWithoutTables: a server whose database has no tables says what to do.
func TestWithoutTables(t *testing.T) {
	t.Parallel()
	if r := command(t, []string{"MILLRACE_ADMIN_TOKEN=x"}, "", "serve", "--listen", "127.0.0.1:0", "--store", postgres.Database(t)); r.status == 0 || !strings.Contains(r.err, "millrace tables") {
		t.Errorf("serve without tables: %+v, want the advice to make them", r)
	}
}

// TestGrowth: the growth of a database is measured by table, once on each schema: what is in use, or was, is left as it is.
func TestGrowth(t *testing.T) {
	t.Parallel()
	url := database(t)
	line := []string{"bench", "growth", "--store", url, "--rate", "20", "--warmup", "0s", "--duration", "400ms", "--every", "100ms", "--output", "json"}
	r := command(t, nil, "", line...)
	var rows []map[string]any
	if err := json.Unmarshal([]byte(r.out), &rows); err != nil || r.status != 0 || len(rows) != 6 {
		t.Fatalf("%v, want 4 steps and 2 quarters: %+v", err, r)
	}
	for _, row := range rows {
		for _, column := range []string{"rows", "dead", "table", "indexes", "tickets", "log", "hot", "hot_tickets", "vacuums"} {
			if value, number := row[column].(float64); !number || value <= 0 && strings.Contains("table indexes tickets log", column) {
				t.Errorf("%s is %v in %v, want a number, and bytes where there are any", column, row[column], row)
			}
		}
	}
	if r := command(t, nil, "", line...); r.status != 2 || !strings.Contains(r.err, "--store") || !strings.Contains(r.err, "another schema") {
		t.Errorf("on a store that was used: %+v, want status 2 and what to do", r)
	}
}

// TestPasswordsAreReplaced: a server connects with the password that its file holds at the time, without a restart; until the file holds
// the right one, /readyz says that the store cannot be used.
func TestPasswordsAreReplaced(t *testing.T) {
	t.Parallel()
	own, file := postgres.Own(t), t.TempDir()+"/passwords"
	makeTables(t, own.URL("postgres"))
	execute := func(statement string) {
		t.Helper()
		if err := own.Execute(statement); err != nil {
			t.Fatal(err)
		}
	}
	write := func(password string) {
		t.Helper()
		if err := os.WriteFile(file, []byte("*:*:*:renewed:"+password+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	execute("CREATE ROLE renewed SUPERUSER LOGIN PASSWORD 'one'")
	if err := own.DemandPasswords(); err != nil {
		t.Fatal(err)
	}
	write("one")
	c := impatient(t, serve(t, strings.Replace(own.URL("postgres"), "millrace@", "renewed@", 1), withEnv("PGPASSFILE="+file)))
	ready := func() error {
		_, _, err := c.Get(t.Context(), "/readyz")
		return err
	}
	eventually(t, "it is ready", func() bool { return ready() == nil })

	execute("ALTER ROLE renewed PASSWORD 'two'")
	if err := own.DropConnections(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "/readyz says that it cannot use the store", func() bool {
		err := ready()
		return client.StatusOf(err) == 503 && strings.Contains(err.Error(), "the store cannot be used")
	})
	write("two")
	eventually(t, "it is ready again", func() bool { return ready() == nil })
}

// TestOutbox: jobs and events that transactions of another program ask for are there once if these commit, and never otherwise, though
// servers are killed meanwhile.
func TestOutbox(t *testing.T) {
	t.Parallel()
	url := database(t)
	servers := []*process.Server{serve(t, url), serve(t, url)}
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	transactions := number(t, "MILLRACE_TEST_OUTBOX", 600)
	const writers = 8
	var group sync.WaitGroup
	for writer := range writers {
		group.Go(func() {
			for n := writer; n < transactions; n += writers {
				if err := ask(t.Context(), pool, n, n%3 != 0); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for n := range 4 {
		s := servers[n%2]
		if err := errors.Join(s.Kill(), s.Start(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	group.Wait()
	c := dial(t, servers[0])
	committed := 0
	for n := range transactions {
		if n%3 != 0 {
			committed++
		}
	}
	eventually(t, "the outbox is empty", func() bool {
		var left int
		if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM millrace.outbox").Scan(&left); err != nil {
			t.Fatal(err)
		}
		return left == 0
	})
	jobs, events := map[string]int{}, map[string]int{}
	for _, e := range readAll(t, c) {
		switch e.Type {
		case "TaskAdded":
			jobs[e.Key.TaskID]++
		case "Asked":
			events[e.Key.Path]++
		}
	}
	for n := range transactions {
		if key := fmt.Sprint("/asked/", n); events[key] != min(1, n%3) {
			t.Errorf("%s: %d events, want %d", key, events[key], min(1, n%3))
		}
	}
	if len(jobs) != committed || len(events) != committed {
		t.Errorf("%d jobs, %d keys of events, want %d of each", len(jobs), len(events), committed)
	}
	t.Logf("%d transactions, of which %d have committed", transactions, committed)
}

// ask asks for a job and an event in a transaction.
func ask(ctx context.Context, pool *pgxpool.Pool, n int, commit bool) error {
	tx, err := pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(ctx) }()
	job := client.NewJob{Topic: "asked", Properties: fmt.Appendf(nil, `{"n":%d}`, n)}
	asked := event.Event{Type: "Asked", Key: event.Key{Path: fmt.Sprint("/asked/", n)}, Fields: fmt.Appendf(nil, `"n":%d`, n)}
	var outbox pgoutbox.Outbox
	if _, err := outbox.AddJob(ctx, tx, job); err != nil {
		return err
	}
	if _, err := outbox.Emit(ctx, tx, asked); err != nil {
		return err
	}
	if !commit {
		return nil
	}
	return tx.Commit(ctx)
}

// TestOutboxRefuses: what is no job or no event fails the transaction that asks for it, and what only the server can refuse stays in
// the outbox with the reason, without holding up others.
func TestOutboxRefuses(t *testing.T) {
	t.Parallel()
	url := database(t)
	c := dial(t, serve(t, url))
	db, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(t.Context())
	for statement, want := range map[string]string{
		`SELECT millrace.add_job('[]')`:           "a job is a JSON object with a topic",
		`SELECT millrace.add_job('{"topic":""}')`: "a job is a JSON object with a topic",
		`SELECT millrace.emit('[]')`:              "events are a JSON array",
		`SELECT millrace.emit('{"TYPE":"A"')`:     "json",
		`SELECT millrace.add_job(NULL)`:           "a job is a JSON object with a topic",
	} {
		if _, err := db.Exec(t.Context(), statement); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s = %v, want an error with %q", statement, err, want)
		}
	}
	for _, statement := range []string{
		`SELECT millrace.add_job('{"topic":"a b"}')`, `SELECT millrace.emit('{"TYPE":"TaskAdded"}')`, `SELECT millrace.emit('{"TYPE":"Made","key":"/after"}')`,
	} {
		if _, err := db.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the event after those that are refused is there", func() bool {
		return slices.ContainsFunc(readAll(t, c), func(e event.Event) bool { return e.Type == "Made" })
	})
	var reasons []string
	eventually(t, "the others are marked, with the reason", func() bool {
		rows, err := db.Query(t.Context(), "SELECT failed FROM millrace.outbox WHERE failed IS NOT NULL ORDER BY id")
		if err != nil {
			t.Fatal(err)
		}
		if reasons, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
			t.Fatal(err)
		}
		return len(reasons) == 2
	})
	if !strings.Contains(reasons[0], "body.topic") || !strings.Contains(reasons[1], "TYPE") {
		t.Errorf("reasons = %q, want the fields' names", reasons)
	}
}
