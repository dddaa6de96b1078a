package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/shared/config"
	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/task"
	"github.com/millrace/millrace/shared/worker"
)

// Growth measures whether a store stays as large as it is, under a steady load of which as much goes as comes.
type Growth struct {
	Scratch
	Store    string        `help:"Database to measure, with tables that nobody uses: postgres://HOST/DATABASE?schema=NAME. Default: a temporary embedded store." placeholder:"URL"`
	Rate     int           `help:"Tasks per second." default:"150"`
	Size     int           `help:"Bytes of a task's payload." default:"256"`
	Kept     time.Duration `help:"How long events are kept." default:"3m"`
	History  time.Duration `help:"How long finished tasks are kept; 0: they are of topics, which leave none." default:"3m"`
	Workers  int           `help:"How many run at once." default:"16"`
	Warmup   time.Duration `help:"How long until as much goes as comes, which is not judged; the history is cleaned each 16 minutes." default:"22m"`
	Duration time.Duration `help:"How long it is judged." default:"1h"`
	Every    time.Duration `help:"How often it is measured." default:"1m"`
}

// Help says what the columns mean.
func (Growth) Help() string {
	return `Jobs, each with a unique key, are added at an even pace and run, in this process with all its upkeep; events go after --kept, finished tasks
after --history, and evicted events are removed --kept after that, where servers wait for a day. The database's tables must be new: millrace tables --store URL makes them.
ROWS and DEAD are PostgreSQL's estimates for the table of items; TABLE and INDEXES its bytes. TICKETS is the table of sequencers with its
index. LOG is what the whole server has written to its log meanwhile; HOT, the share of updates that changed no index, of items and of sequencers; VACUUMS, the
runs of autovacuum on both. Of the embedded store, TABLE is its directory. The last rows are the means of the first and the last quarter of --duration.`
}

// check says what is wrong with the settings.
func (b Growth) check() error {
	switch {
	case b.Rate < 1 || b.Workers < 1 || b.Size < 0:
		return UsageError("--rate and --workers: want 1 or more; --size: want 0 or more")
	case b.History < 0:
		return UsageError("--history: want 0 or more")
	case b.Kept < time.Minute:
		return UsageError("--kept: want 1m or more, since what is under way must not be removed")
	case b.Every <= 0 || b.Duration < 4*b.Every || b.Warmup < 0:
		return UsageError("--duration: want at least four times --every, and neither negative nor 0; --warmup: want 0 or more")
	case b.Store != "" && !strings.HasPrefix(b.Store, "postgres:"):
		return UsageError("--store: want postgres://HOST/DATABASE, or leave it out to measure a temporary embedded store")
	}
	return nil
}

// Run loads the store and measures it at each step.
func (b Growth) Run(ctx context.Context, p Program) (*Results, error) {
	if err := b.check(); err != nil {
		return nil, err
	}
	r := newResults("AT\tDONE\tROWS\tDEAD\tTABLE\tINDEXES\tTICKETS\tLOG\tHOT\tHOT TICKETS\tVACUUMS",
		"at", "done", "rows", "dead", "table", "indexes", "tickets", "log", "hot", "hot_tickets", "vacuums")
	return r, b.dir(func(dir string) error {
		settings := config.Settings{
			Store: storeURL(dir), Definitions: b.definitions(), Retention: config.Retention{Age: b.Kept}, History: config.History{Age: b.History}, RemoveAfter: b.Kept,
		}
		if b.Store != "" {
			settings.Store, settings.Notifier = b.Store, b.Store
		}
		n, err := p.Open(ctx, settings)
		if err != nil {
			return err
		}
		return errors.Join(b.load(ctx, p, r, &growing{Node: n, dir: dir}), n.Close())
	})
}

// growing is the program under load.
type growing struct {
	*Node
	dir  string
	done atomic.Int64
	log  int64 // where the database's log was
}

// benchJobs is how many jobs share the load: the history of each is cleaned in a minute of its own.
const benchJobs = 64

// job returns the path of a job of the load.
func (b Growth) job(n int64) string {
	if b.History == 0 {
		return fmt.Sprint(benchTopic, n%benchJobs)
	}
	return fmt.Sprint(benchJob, n%benchJobs)
}

func (b Growth) definitions() *definition.Set {
	set := &definition.Set{}
	for i := range int64(benchJobs) {
		set.Jobs = append(set.Jobs, definition.Job{Path: b.job(i), Target: definition.Target{Go: "nothing"}})
	}
	return set
}

// load adds and runs tasks while the store is measured.
func (b Growth) load(ctx context.Context, p Program, r *Results, g *growing) error {
	if err := g.isNew(ctx); err != nil {
		return err
	}
	if g.Database != nil {
		var err error
		if _, g.log, err = g.Database.Footprints(ctx); err != nil {
			return err
		}
	}
	if err := g.Declare(ctx); err != nil {
		return err
	}
	loading, end := context.WithCancel(ctx)
	defer end()
	return together(ctx, 2, func(ctx context.Context, i int) error {
		if i == 0 {
			defer end()
			return b.watch(ctx, p, r, g)
		}
		defer context.AfterFunc(ctx, end)() // it could not be watched
		err := together(loading, 3, func(ctx context.Context, i int) error {
			return []func(context.Context, *growing) error{b.add, b.work, upkeep}[i](ctx, g)
		})
		if loading.Err() != nil {
			return nil // it was over
		}
		return err
	})
}

func upkeep(ctx context.Context, g *growing) error {
	g.Upkeep(ctx)
	return nil
}

// isNew returns an error if anything has happened on the store: its definitions would be replaced, and its history removed.
func (g *growing) isNew(ctx context.Context) error {
	swept, err := g.Journal.Sweep(ctx)
	if err == nil && swept.Position > 0 {
		err = UsageError("--store: the store is in use, or was; give another schema, and make its tables with millrace tables --store URL")
	}
	return err
}

// work runs tasks, which do nothing, until ctx ends.
func (b Growth) work(ctx context.Context, g *growing) error {
	functions := worker.Functions{"nothing": func(context.Context, *worker.Attempt, *worker.Log) (json.RawMessage, error) {
		g.done.Add(1)
		return nil, nil
	}}
	return worker.NewPool(worker.PoolOptions{
		Workers: b.Workers, Notifier: g.Notifier, Claimer: queue.Claimer{Instance: "bench", Queues: []string{definition.MainQueue}},
		Runner: worker.NewRunner(worker.Options{Engine: g.Queue, Definitions: g.Definitions, Targets: worker.Targets{Go: functions}}),
	}).Run(ctx)
}

// growthProducers is how many add tasks, so that a slow answer does not break the pace.
const growthProducers = 32

// add adds tasks at an even pace until ctx ends.
func (b Growth) add(ctx context.Context, g *growing) error {
	ticker := time.NewTicker(time.Second / time.Duration(b.Rate))
	defer ticker.Stop()
	payload := text(b.Size)
	var next atomic.Int64
	return together(ctx, growthProducers, func(ctx context.Context, _ int) error {
		for {
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return nil
			}
			n := next.Add(1)
			t := queue.New{Dialect: task.Job, Job: b.job(n), Payload: payload, Unique: fmt.Sprint(n)}
			if _, err := g.Queue.Enqueue(ctx, nil, t); err != nil {
				return err
			}
		}
	})
}

// watch measures the store at each step, and compares the quarters at last.
func (b Growth) watch(ctx context.Context, p Program, r *Results, g *growing) error {
	began := time.Now()
	ticker := time.NewTicker(b.Every)
	defer ticker.Stop()
	var judged []footprint
	for planned := b.Every; planned <= b.Warmup+b.Duration; planned += b.Every {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		f, err := g.footprint(ctx)
		if err != nil {
			return err
		}
		elapsed := time.Since(began).Round(b.Every)
		r.add(f.cells(elapsed.String(), g.done.Load())...)
		p.tell("%v: %d tasks done, %v", elapsed, g.done.Load(), size(f.bytes()))
		if planned > b.Warmup {
			judged = append(judged, f)
		}
	}
	r.judge(judged)
	return nil
}

// judge adds the means of the first and the last quarter, and what follows from them.
func (r *Results) judge(judged []footprint) {
	quarter := len(judged) / 4
	first, last := mean(judged[:quarter]), mean(judged[len(judged)-quarter:])
	r.add(first.cells("first quarter", unmeasured{})...)
	r.add(last.cells("last quarter", unmeasured{})...)
	r.Verdict = verdict(first, last)
}

// footprint is what a store takes at a moment.
type footprint struct {
	database                                      bool
	rows, dead, table, indexes, tickets, log, vac float64
	hot, hotTickets                               float64
}

func (g *growing) footprint(ctx context.Context) (f footprint, err error) {
	if g.Database == nil {
		f.table, err = directory(g.dir)
		return f, err
	}
	tables, log, err := g.Database.Footprints(ctx)
	f.database, f.log = true, float64(log-g.log)
	for _, t := range tables {
		hot := float64(t.HOT) / float64(max(t.Updates, 1))
		f.vac += float64(t.Autovacuums)
		switch t.Table {
		case "items":
			f.rows, f.dead, f.table, f.indexes, f.hot = float64(t.Rows), float64(t.Dead), float64(t.Bytes), float64(t.IndexBytes), hot
		case "sequencers":
			f.tickets, f.hotTickets = float64(t.Bytes+t.IndexBytes), hot
		}
	}
	return f, err
}

// directory returns how many bytes the files below a directory have. Files may go meanwhile.
func directory(dir string) (bytes float64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return ignoreGone(err)
		}
		info, err := d.Info()
		if err == nil {
			bytes += float64(info.Size())
		}
		return ignoreGone(err)
	})
	return bytes, err
}

func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// mean returns the means of sizes; what is counted since the beginning is the last.
func mean(all []footprint) (m footprint) {
	if len(all) == 0 {
		return m
	}
	n := float64(len(all))
	for _, f := range all {
		m.rows, m.dead = m.rows+f.rows/n, m.dead+f.dead/n
		m.table, m.indexes, m.tickets = m.table+f.table/n, m.indexes+f.indexes/n, m.tickets+f.tickets/n
	}
	last := all[len(all)-1]
	m.database, m.log, m.vac, m.hot, m.hotTickets = last.database, last.log, last.vac, last.hot, last.hotTickets
	return m
}

// bytes returns what the store takes in all.
func (f footprint) bytes() float64 { return f.table + f.indexes + f.tickets }

func (f footprint) cells(at string, done any) []any {
	if !f.database {
		return []any{at, done, unmeasured{}, unmeasured{}, size(f.table), unmeasured{}, unmeasured{}, unmeasured{}, unmeasured{}, unmeasured{}, unmeasured{}}
	}
	return []any{
		at, done, int64(f.rows), int64(f.dead), size(f.table), size(f.indexes), size(f.tickets), size(f.log), share(f.hot), share(f.hotTickets), int64(f.vac),
	}
}

// steady is the part by which the size may differ where it is called flat.
const steady = 0.05

// verdict says whether the store has grown from the first quarter to the last.
func verdict(first, last footprint) string {
	change := last.bytes()/max(first.bytes(), 1) - 1
	word := "flat"
	switch {
	case change > steady:
		word = "it grew"
	case change < -steady:
		word = "it shrank"
	}
	return fmt.Sprintf("from the first quarter to the last: %v, then %v, %+.1f %%: %s", size(first.bytes()), size(last.bytes()), 100*change, word)
}
