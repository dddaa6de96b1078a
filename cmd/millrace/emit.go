package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/shared/event"
)

type emitCommand struct {
	remote
	format
	Type   string   `arg:"" optional:"" help:"Type of the event, such as ParcelShipped."`
	Key    string   `arg:"" optional:"" help:"What it is about, such as /parcels/17."`
	Fields []string `arg:"" optional:"" name:"field" help:"NAME=TEXT, or NAME:=JSON for numbers, objects and the like."`
	File   string   `short:"f" help:"Read events from a file, one JSON object a line; - is standard input." placeholder:"FILE"`
	Batch  int      `help:"Events per append: each batch is appended as a whole or not at all." default:"100"`
	Once   string   `help:"A key of your choice: if the command is repeated with it and the same events within 24 hours, nothing is appended twice." placeholder:"KEY"`
	Quiet  bool     `short:"q" help:"Print no ids."`
}

func (emitCommand) Help() string {
	return `Examples:

    millrace emit ParcelShipped /parcels/17 carrier=dhl weight:=2.5
    millrace emit --file events/demo/packages.jsonl
    scripts/dpkg-events /var/log/dpkg.log | millrace emit --once dpkg

A line of a file is an object with TYPE, key if it has one, and any fields:

    {"TYPE":"ParcelShipped","key":"/parcels/17","carrier":"dhl","weight":2.5}

While the server is away, sending is repeated; whatever happens, no event is appended twice.`
}

// Run appends the events and prints their ids.
func (e emitCommand) Run(ctx context.Context, c console) error {
	server, err := e.dial(c)
	if err != nil {
		return err
	}
	defer server.Close()
	next, done, err := e.batches(c)
	if err != nil {
		return err
	}
	defer done()
	return e.emit(ctx, server, c, next)
}

// batches returns a function that returns the next batch, io.EOF after the last.
func (e emitCommand) batches(c console) (next func() ([]event.Event, error), done func(), err error) {
	nothing := func() {}
	switch {
	case e.Batch < 1:
		return nil, nothing, misused("--batch is %d, want at least 1", e.Batch)
	case e.Type != "" && e.File != "":
		return nil, nothing, misused("give either an event or --file, not both")
	case e.Type != "":
		one, err := eventOf(e.Type, e.Key, e.Fields)
		return once(one), nothing, err
	case e.File == "" && isTerminal(c.in):
		return nil, nothing, misused("nothing to emit: give TYPE KEY NAME=TEXT…, a --file, or pipe in JSON lines")
	case e.File == "" || e.File == "-":
		return newLines(c.in, "standard input", e.Batch).next, nothing, nil
	}
	file, err := os.Open(e.File)
	if err != nil {
		return nil, nothing, usageError{err}
	}
	return newLines(file, e.File, e.Batch).next, func() { file.Close() }, nil
}

func once(e event.Event) func() ([]event.Event, error) {
	sent := false
	return func() ([]event.Event, error) {
		if sent {
			return nil, io.EOF
		}
		sent = true
		return []event.Event{e}, nil
	}
}

// emit sends batch after batch.
func (e emitCommand) emit(ctx context.Context, server *client.Client, c console, next func() ([]event.Event, error)) error {
	out := e.printer(c)
	total, replayed := 0, 0
	for n := 1; ; n++ {
		events, err := next()
		if errors.Is(err, io.EOF) {
			return out.end(total, replayed)
		}
		was := false
		if err == nil {
			was, err = e.send(ctx, server, events, n)
		}
		if err == nil {
			err = out.events(events)
		}
		if err != nil {
			return afterSome(err, total)
		}
		if total += len(events); was {
			replayed += len(events)
		}
	}
}

// afterSome adds to an error how many events were appended before it.
func afterSome(err error, total int) error {
	if total == 0 {
		return err
	}
	return fmt.Errorf("%w (%d events were appended before)", err, total)
}

// send appends one batch and gives the events their ids. The nth batch of a run has the nth key; replayed says that it
// was appended by an earlier run.
func (e emitCommand) send(ctx context.Context, server *client.Client, events []event.Event, n int) (replayed bool, err error) {
	var ids []event.ID
	if e.Once == "" {
		ids, err = server.Emit(ctx, events)
	} else {
		ids, replayed, err = server.EmitOnce(ctx, e.Once+"-"+strconv.Itoa(n), events)
	}
	if err != nil {
		return false, err
	}
	if len(ids) != len(events) {
		return false, fmt.Errorf("the server returned %d ids for %d events", len(ids), len(events))
	}
	for i := range events {
		events[i].ID = ids[i]
	}
	return replayed, nil
}

// emitted prints the events that were appended.
type emitted struct {
	console
	emitCommand
	ids []event.ID
}

func (e emitCommand) printer(c console) *emitted { return &emitted{console: c, emitCommand: e} }

func (p *emitted) events(events []event.Event) error {
	if p.Quiet {
		return nil
	}
	switch p.Output {
	case "jsonl":
		return printLines(p.out, events)
	case "json":
		for i := range events {
			p.ids = append(p.ids, events[i].ID)
		}
		return nil
	}
	for i := range events {
		if _, err := fmt.Fprintf(p.out, "%d  %-18s  %s\n", events[i].ID, events[i].Type, keyText(events[i].Key)); err != nil {
			return err
		}
	}
	return nil
}

func (p *emitted) end(total, replayed int) error {
	switch {
	case p.Output == "json" && !p.Quiet:
		return printJSON(p.out, map[string][]event.ID{"eventIds": p.ids})
	case replayed > 0:
		p.note("%s appended, %d were there already", count(total-replayed, "event"), replayed)
	case p.Output == "table" && total != 1:
		p.note("%s appended", count(total, "event"))
	}
	return nil
}
