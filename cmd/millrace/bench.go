package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/millrace/millrace/shared/bench"
	"github.com/millrace/millrace/shared/config"
	"github.com/millrace/millrace/shared/host"
)

type benchCommand struct {
	Append  benchmark[bench.Append]  `cmd:"" help:"Durable appends per second, by writers and batch size, beside what the disk can do."`
	Read    benchmark[bench.Read]    `cmd:"" help:"Events read per second, from the beginning of the journal."`
	Follow  benchmark[bench.Follow]  `cmd:"" help:"How soon a waiting follower has an event."`
	Tasks   benchmark[bench.Tasks]   `cmd:"" help:"Tasks enqueued, started and ended per second, and how soon they start."`
	Streams benchmark[bench.Streams] `cmd:"" help:"Appends to one stream per second, single and in batches, and reading it in pages."`
	Claims  benchmark[bench.Claims]  `cmd:"" help:"Tasks claimed and ended per second by remote workers over HTTP, beside what the HTTP stack can do."`
	Idle    benchmark[bench.Idle]    `cmd:"" help:"What workers that wait for tasks cost a server: memory, and processor time."`
	Pages   benchmark[bench.Pages]   `cmd:"" help:"How long the dashboard's pages take with much in the store, and what open ones cost."`
	Growth  benchmark[bench.Growth]  `cmd:"" help:"Whether a store stays as large as it is under a steady load: tables, indexes, what autovacuum does."`
	Cloud   benchmark[bench.Cloud]   `cmd:"" help:"Tasks and appends of many processes on DynamoDB's published limits, in virtual time."`
	Stack   benchStackCommand        `cmd:"" hidden:"" help:"Serve nothing: what bench append compares with."`
}

func (benchCommand) Help() string {
	return `Examples:

    millrace bench append --writers 1,16,64 --batch 1,100
    millrace bench read --events 1000000
    millrace bench follow
    millrace bench tasks --backlog 0,1000000
    millrace bench streams --events 1000000
    millrace bench claims --workers 1,16 --batch 1,32
    millrace bench idle --workers 1000
    millrace bench pages --tasks 1000000 --schedules 10000 --orders 100000
    millrace bench growth --store 'postgres://host/database?schema=bench' --rate 150 --duration 1h
    millrace bench cloud --rate 2000 --queues 1,20
    millrace bench append --url http://127.0.0.1:8080

Without --url everything happens on this machine with a temporary embedded store. The figures are those that a client has, over HTTP
with a server in a process of its own on the loopback interface; beside them, in the columns INSIDE, are those of the engine alone, in
this process. --http and --in-process measure one of both. Every append is durable before it counts. The writers are goroutines of one
client, which share requests.

The columns beside the rates of bench append are what was possible in the same seconds: DISK/S, records a second that go to a
growing file with one fdatasync for all that wait; HTTP/S, the same requests to a server that reads them and responds at once, also
in a process of its own; AT MOST, the bound that follows from both: the lesser of the two, or, with one writer, which waits for each
before it begins the other, the rate of both one after the other.`
}

// benchmark is the command for one measurement.
type benchmark[M bench.Measurement] struct {
	format
	Measurement M `embed:""`
}

// Help explains the measurement.
func (b benchmark[M]) Help() string { return b.Measurement.Help() }

// Run measures every case and prints a row for each.
func (b benchmark[M]) Run(ctx context.Context, c console) error {
	r, err := b.Measurement.Run(ctx, bench.Program{Open: openSilent, Ready: ready, Told: c.err})
	if usage, ok := errors.AsType[bench.UsageError](err); ok {
		return usageError{usage}
	}
	return errors.Join(err, printResults(c.out, b.format, r))
}

func openSilent(ctx context.Context, settings config.Settings) (*bench.Node, error) {
	n, err := openNode(ctx, settings, silent())
	if err != nil {
		return nil, err
	}
	return &bench.Node{Tasks: n.Tasks, Upkeep: n.upkeep, Database: n.database}, nil
}

// printResults prints the rows as a table, or as JSON objects.
func printResults(w io.Writer, f format, r *bench.Results) error {
	if f.Output == "table" {
		err := table(w, r.Heading, func(row func(...any)) {
			for _, cells := range r.Rows {
				row(cells...)
			}
		})
		if r.Verdict != "" {
			fmt.Fprintln(w, r.Verdict)
		}
		return err
	}
	objects := make([]map[string]any, len(r.Rows))
	for i, cells := range r.Rows {
		objects[i] = make(map[string]any, len(cells))
		for k, cell := range cells {
			objects[i][r.Names[k]] = cell
		}
	}
	if f.Output == "json" {
		return printJSON(w, objects)
	}
	return printLines(w, objects)
}

// benchStackCommand is the HTTP host with nothing behind it.
type benchStackCommand struct{}

// Run serves until ctx ends.
func (benchStackCommand) Run(ctx context.Context, c console) error {
	listener, err := listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintf(c.out, ready, "http://"+listener.Addr().String())
	return host.Server{Handler: http.HandlerFunc(bench.Stack), Log: silent()}.Serve(ctx, listener)
}
