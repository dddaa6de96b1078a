package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/millrace/millrace/shared/config"
	"github.com/millrace/millrace/shared/host"
	"github.com/millrace/millrace/shared/notifier"
	"github.com/millrace/millrace/shared/notifier/local"
	"github.com/millrace/millrace/shared/service"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/limited"
	"github.com/millrace/millrace/shared/store/memory"
)

// Cloud measures many processes on a table of DynamoDB, in virtual time.
type Cloud struct {
	Cases     []string      `help:"What is measured: tasks (long-lived workers), backlog (functions woken by SQS), append (processes that append one event at a time) and combine (few processes with many callers)." default:"tasks,append,combine,backlog"`
	Processes []int         `help:"Processes that enqueue and run tasks, and those of combine." default:"8"`
	Workers   int           `help:"Workers in all processes together." default:"64"`
	Queues    []int         `help:"Queues with a job each." default:"1,20"`
	Parts     []int         `help:"In how many partitions what waits in a queue lies at most: 1, 2, 4, 8 or 16." default:"16"`
	Rate      []int         `help:"Tasks a second that are enqueued." default:"100,500,2000"`
	Appenders int           `help:"Processes that append, and callers in all processes of combine together." default:"64"`
	Pace      []int         `help:"Appends a second that are begun; 0: each caller begins one when it has ended another." default:"0,900"`
	Keys      bool          `help:"Give each append an idempotency key, as the clients do."`
	Functions int           `help:"Functions that run a backlog at once." default:"100"`
	Backlog   int           `help:"Tasks that wait for them." default:"100000"`
	Size      int           `help:"Bytes of an event, and of a task's payload." default:"1024"`
	Warmup    time.Duration `help:"Virtual time before the measurement." default:"10s"`
	Duration  time.Duration `help:"Virtual time that is measured." default:"1m"`
	Table     int           `help:"Write units a second of each table, and as many read units." default:"40000"`
	Burst     time.Duration `help:"How long a partition saves units that are not used." default:"1s"`
	Seed      uint64        `help:"From which the times of calls are drawn." default:"1"`
}

// Help says what is measured and what is left out.
func (Cloud) Help() string {
	return `The program's own code runs in virtual time, in which computing takes no time, over a store that holds DynamoDB's limits: 1,000 write and
3,000 read units a second for each partition key, transactions that are refused where they overlap another write of the same item,
and calls whose times are log-normal: half of the reads and of the single writes within 4 ms, of the transactions within 10 ms, one of a
hundred above 2.5 times that. Notifications go through a line like SQS: half of the requests within 10 ms, ten notices in each.

IN/S is what was enqueued, DONE/S what was ended, or appended. The times are from when a task was added to its start, or those of an append;
of a backlog, from the start of a function's task to that of its next.
THROTTLED are requests that found no units left, CONFLICTS writes that met a transaction. WCU and RCU are write and read units for each
task or event, $/M dollars for a million, by 0.625 and 0.125 dollars for a million units and 0.40 for a million requests to SQS.

It leaves out: adaptive capacity, the splitting of hot partitions and bursts beyond the setting, which a new partition key has not, and all of which help; time for computing, for large
items and for the way from clients, lost messages and the price of Lambda, which harm; schedules, orders, limits and failing tasks.`
}

// Prices of a million units, on demand, and of a million requests to SQS, in dollars.
const (
	priceWrites = 0.625
	priceReads  = 0.125
	priceSQS    = 0.40
)

// Run measures every case.
func (c Cloud) Run(ctx context.Context, _ Program) (*Results, error) {
	r := newResults("CASE\tRATE\tIN/S\tDONE/S\tP50\tP99\tMAX\tTHROTTLED\tCONFLICTS\tWCU\tRCU\t$/M",
		"case", "rate", "in_per_s", "done_per_s", "p50_ms", "p99_ms", "max_ms", "throttled", "conflicts", "wcu", "rcu", "dollars_per_million")
	measures := map[string]func(context.Context, *Results) error{
		"tasks": c.tasks, "backlog": c.backlog, "append": c.append, "combine": c.combine,
	}
	for _, name := range c.Cases {
		measure, known := measures[name]
		if !known {
			return r, UsageError(fmt.Sprintf("--cases: %q is none of tasks, backlog, append and combine", name))
		}
		if err := measure(ctx, r); err != nil {
			return r, fmt.Errorf("%s: %w", name, err)
		}
	}
	return r, nil
}

// cloud is a deployment of many processes, in virtual time.
type cloud struct {
	store *limited.Store
	line  *cloudLine
	parts int           // of a queue, at most; 0: the default
	began limited.Usage // when the measurement began
	sent  int           // requests to the line then
}

// deploy calls do with a new deployment in virtual time.
func (c Cloud) deploy(ctx context.Context, do func(context.Context, *cloud) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return virtually(ctx, func() error {
		ctx, cancel := context.WithCancel(context.Background()) // the caller's context is not of this time
		defer cancel()
		s := limited.New(memory.New(memory.Options{}), limited.Limits{
			TableWrites: float64(c.Table), TableReads: float64(c.Table), Burst: c.Burst, Cold: true,
			Latency: 4 * time.Millisecond, Transaction: 10 * time.Millisecond, Tail: 0.4, Seed: c.Seed,
		})
		d := &cloud{store: s, line: &cloudLine{Line: local.New()}}
		return errors.Join(do(ctx, d), d.line.Line.Close(), s.Close())
	})
}

// process opens one more process.
func (d *cloud) process() *service.Tasks {
	place := host.Place{Env: func(string) string { return "" }}
	return service.NewTasks(service.New(place, config.Settings{Parts: d.parts}, connection{d.store}, slog.New(slog.DiscardHandler)), d.line)
}

// connection is a process's store; closing it closes nothing of the others'.
type connection struct{ store.Store }

// Close does nothing.
func (connection) Close() error { return nil }

// begin begins the measurement.
func (d *cloud) begin() { d.began, d.sent = d.store.Usage(), d.line.requests() }

// row adds what was measured since begin.
func (c Cloud) row(r *Results, d *cloud, name string, asked, in, done int, laps []time.Duration) {
	used, seconds := d.store.Usage().Minus(d.began), c.Duration.Seconds()
	sqs := float64(d.line.requests() - d.sent)
	each := 1 / float64(max(done, 1))
	slices.Sort(laps)
	r.add(name, rate(asked), rate(float64(in)/seconds), rate(float64(done)/seconds),
		quantile(laps, 0.5), quantile(laps, 0.99), quantile(laps, 1), used.Throttled, used.Conflicts,
		units(used.WriteUnits*each), units(used.ReadUnits*each),
		dollars((used.WriteUnits*priceWrites+used.ReadUnits*priceReads+sqs*priceSQS)*each))
}

// units are capacity units.
type units float64

// String shows them for people.
func (u units) String() string { return fmt.Sprintf("%.1f", float64(u)) }

// dollars are a price.
type dollars float64

// String shows it for people.
func (d dollars) String() string { return fmt.Sprintf("%.2f", float64(d)) }

var _ notifier.Line = (*cloudLine)(nil)
