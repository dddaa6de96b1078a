package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/notifier"
	pgnotifier "github.com/millrace/millrace/shared/notifier/postgres"
	"github.com/millrace/millrace/shared/pgurl"
	"github.com/millrace/millrace/shared/store"
	pgstore "github.com/millrace/millrace/shared/store/postgres"
	"github.com/millrace/millrace/shared/store/storetest"
	"github.com/millrace/millrace/tests/postgres"
	"github.com/millrace/millrace/tests/process"
)

// unprepared is what a URL needs where a pooler does not keep prepared statements.
const unprepared = "&default_query_exec_mode=cache_describe"

func openStore(t *testing.T, url string) *pgstore.Store {
	t.Helper()
	s, err := pgstore.Open(context.Background(), pgstore.Options{URL: url, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// The store does all that the port asks of it through a pooler in transaction mode, whose connections its own take turns with.
func TestStoreBehindAPooler(t *testing.T) {
	t.Parallel()
	url := postgres.Behind(t, postgres.Database(t)).URL() + unprepared
	if err := openStore(t, url).CreateTables(t.Context()); err != nil {
		t.Fatal(err)
	}
	storetest.Run(t, func(t *testing.T) store.Store { return openStore(t, url+"&pool_max_conns=4") }, storetest.Capabilities{Advances: true})
}

// A store whose prepared statements the pooler does not keep says what to add to the URL, and until then does nothing wrong.
func TestStatementsThatAPoolerForgets(t *testing.T) {
	t.Parallel()
	url := postgres.Behind(t, tables(t)).URL() + "&pool_max_conns=1"
	key := store.Key{Table: store.Work, Partition: "p", Sort: "s"}
	for n := range 2 { // the second finds on the connection what the first has prepared
		_, err := openStore(t, url).Get(t.Context(), key)
		if n == 0 && err != nil {
			t.Fatal(err)
		}
		if err != nil && (!errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "add default_query_exec_mode=cache_describe to the URL")) {
			t.Errorf("Get = %v, want what to add, or nothing where the pooler keeps them", err)
		}
	}
}

// A pool drops what other clients of a pooler listen to, and what comes to it as well.
func TestPoolsDropWhatOthersListenTo(t *testing.T) {
	t.Parallel()
	url := postgres.Behind(t, postgres.Database(t)).URL()
	execute(t, url, "LISTEN others") // the pooler's connection listens on
	config, _, err := pgurl.Pool(url + unprepared)
	if err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	c, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Release()
	if _, err := c.Exec(t.Context(), "NOTIFY others"); err != nil {
		t.Fatal(err)
	}
	over, end := context.WithCancel(t.Context())
	end()
	if kept, err := c.Conn().WaitForNotification(over); err == nil {
		t.Errorf("the connection has kept %+v", kept)
	}
}

// Two servers behind a pooler that is killed again and again: each job that was acknowledged at one ends once at a worker of the other,
// and followers see each acknowledged event once and in order, as where nothing happens to the pooler. Nobody has to do anything.
func TestServersOutliveTheirPooler(t *testing.T) {
	t.Parallel()
	for name, bell := range map[string]func(direct string) []string{
		"the notifier behind it too": func(string) []string { return nil },
		"the notifier past it":       func(direct string) []string { return []string{"MILLRACE_BELL=" + direct} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			direct := postgres.Database(t)
			pooler := postgres.Behind(t, direct)
			url := pooler.URL() + unprepared
			makeTables(t, url)
			one, other := serve(t, url, bell(direct)...), serve(t, url, bell(direct)...)
			outlive(t, pooler, one, other)
		})
	}
}

// outlive kills the pooler while jobs and events are added at one server; the other one's worker and follower see to them.
func outlive(t *testing.T, pooler *postgres.Pooler, one, other *process.Server) {
	t.Helper()
	const kills, between = 4, 40
	seen := observe(t, other.Dial(t))
	work(t, other.Dial(t))
	a := &adding{client: one.Dial(t)}
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for n := range 4 {
		group.Go(func() { a.run(ctx, t, n) })
	}
	for range kills {
		goal := a.count.Load() + between
		eventually(t, "more is acknowledged", func() bool { return a.count.Load() >= goal || t.Failed() })
		pooler.Kill()
		if err := pooler.Start(); err != nil {
			t.Fatal(err)
		}
	}
	goal := a.count.Load() + between
	eventually(t, "it goes on", func() bool { return a.count.Load() >= goal || t.Failed() })
	cancel()
	group.Wait()
	eventually(t, "every job has ended, and every event is seen", func() bool { return seen.saw(a.tasks, a.keys) || t.Failed() })
	seen.once(t)
	t.Logf("%d kills, %d jobs and %d events acknowledged", kills, len(a.tasks), len(a.keys))
}

// adding adds jobs and emits events through a client, which repeats what got no response.
type adding struct {
	client *client.Client
	count  atomic.Int64

	mu    sync.Mutex
	tasks []string // ids of jobs that were acknowledged
	keys  []string // of events that were
}

// run adds until ctx ends.
func (a *adding) run(ctx context.Context, t *testing.T, producer int) {
	for n := 0; ctx.Err() == nil; n++ {
		key := fmt.Sprintf("/made/%d/%d", producer, n)
		job, _, err := a.client.AddJob(t.Context(), client.NewJob{Topic: "w"})
		if err == nil {
			_, _, err = a.client.EmitOnce(t.Context(), key, []event.Event{{Type: "Made", Key: event.Key{Path: key}}})
		}
		if err != nil {
			t.Errorf("the client gave up: %v", err)
			return
		}
		a.mu.Lock()
		a.tasks, a.keys = append(a.tasks, job.ID), append(a.keys, key)
		a.mu.Unlock()
		a.count.Add(1)
	}
}

// What transactions of other programs ask for through the pooler comes to be, though nothing tells the server of it there: it looks.
func TestOutboxBehindAPooler(t *testing.T) {
	t.Parallel()
	url := postgres.Behind(t, postgres.Database(t)).URL() + unprepared
	makeTables(t, url)
	seen := observe(t, serve(t, url).Dial(t))
	var keys []string
	for n := range 3 {
		key := fmt.Sprint("/made/", n)
		keys = append(keys, key)
		execute(t, url, `SELECT millrace.emit('{"TYPE":"Made","key":"`+key+`"}')`)
		eventually(t, "the event is there", func() bool { return seen.saw(nil, keys) })
	}
	seen.once(t)
}

// A server whose store is behind a pooler, and whose notifier is not, tells other processes of a job, and listens to them.
func TestNotifierPastThePooler(t *testing.T) {
	t.Parallel()
	direct := postgres.Database(t)
	url := postgres.Behind(t, direct).URL() + unprepared
	makeTables(t, url)
	c := serve(t, url, "MILLRACE_BELL="+direct).Dial(t)
	other, err := pgnotifier.Open(t.Context(), pgnotifier.Options{URL: direct, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	var heard atomic.Bool
	other.Hear(func([]notifier.Notice) { heard.Store(true) })
	db, err := pgx.Connect(t.Context(), direct)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(t.Context())
	eventually(t, "both listen", func() bool {
		var listen int
		err := db.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%_notices%'").Scan(&listen)
		return err == nil && listen == 2
	})
	if _, _, err := c.AddJob(t.Context(), client.NewJob{Topic: "w"}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the server has told of the job", heard.Load)
}
