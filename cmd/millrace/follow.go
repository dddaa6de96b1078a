package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/shared/event"
)

type followCommand struct {
	remote
	format
	After    *int64        `help:"EventId to begin after; 0 is the beginning. Default: only what comes from now on." placeholder:"ID"`
	Return   []string      `help:"Only events of these types; super types such as Event, OrderEvent or CustomEvent too." placeholder:"TYPE"`
	Path     string        `help:"Only events whose key matches: /a the object, /a/ all below, /a/* its children, | between several." placeholder:"PATH"`
	Limit    *int          `help:"Most events per request. Negative: print the newest ones, newest first, and end." placeholder:"N"`
	Count    *int          `short:"n" help:"End after so many events." placeholder:"N"`
	Idle     time.Duration `help:"End when no event has come for so long, which never is where they come all the time." placeholder:"TIME"`
	Snapshot bool          `help:"Print the state first, then the events after it."`
	Cause    bool          `help:"Print with each event the id of the event that brought it about, and who acted."`
}

func (followCommand) Help() string {
	return `Examples:

    millrace follow                                  what happens from now on
    millrace follow --after 0 --idle 1s              all there is, until none comes for a second
    millrace follow --return PackageInstalled,PackageRemoved --output jsonl
    millrace follow --path /packages/ --snapshot     the state, then every change of it
    millrace follow --limit -10                      the ten newest events
    millrace follow --cause --return TaskEvent       what happens to tasks, what brings it about, and who

When the server goes away, follow waits for it and goes on where it was: no event is missed or printed twice. When events were
evicted before they could be read, the new state is printed in their place.`
}

// Run prints events until ctx ends, which is not an error.
func (f followCommand) Run(ctx context.Context, c console) error {
	if err := f.check(); err != nil {
		return err
	}
	server, err := f.dial(c)
	if err != nil {
		return err
	}
	defer server.Close()
	out := &eventPrinter{format: f.format, w: bufio.NewWriter(c.out), console: c}
	if f.Limit != nil && *f.Limit < 0 {
		err = f.newest(ctx, server, out)
	} else {
		err = f.follow(ctx, server, out)
	}
	if err == nil || ctx.Err() != nil {
		return out.end()
	}
	return errors.Join(err, out.end())
}

// check returns an error if a number is given that would mean nothing.
func (f followCommand) check() error {
	if f.Limit != nil && *f.Limit == 0 {
		return misused("--limit is 0, want at least 1, or -N for the N newest events")
	}
	return atLeastOne("count", f.Count)
}

// atLeastOne returns an error if the flag of that name is given and is less than 1.
func atLeastOne(name string, given *int) error {
	if given != nil && *given < 1 {
		return misused("--%s is %d, want at least 1", name, *given)
	}
	return nil
}

func (f followCommand) query() client.Query {
	q := client.Query{Types: f.Return, Path: f.Path, Wait: f.Idle, Causes: f.Cause}
	if f.Limit != nil {
		q.Limit = *f.Limit
	}
	return q
}

// newest prints the newest events, as a negative limit asks.
func (f followCommand) newest(ctx context.Context, server *client.Client, out *eventPrinter) error {
	q := f.query()
	q.Wait = 0
	if f.After != nil {
		q.After = event.ID(*f.After)
	}
	answer, err := server.Read(ctx, q)
	if err != nil {
		return err
	}
	return out.events(answer.Events)
}

func (f followCommand) follow(ctx context.Context, server *client.Client, out *eventPrinter) error {
	q, err := f.begin(ctx, server, out)
	if err != nil {
		return err
	}
	left := math.MaxInt
	if f.Count != nil {
		left = *f.Count
	}
	for step, err := range server.Follow(ctx, q) {
		if err != nil {
			return err
		}
		if step.Snapshot != nil {
			out.console.note("events were evicted before they were read; here is the state at %d", step.Snapshot.EventID)
			err = out.snapshot(step.Snapshot)
		} else if len(step.Events) == 0 && f.Idle > 0 {
			return nil
		}
		if len(step.Events) >= left {
			return out.events(step.Events[:left])
		}
		left -= len(step.Events)
		if err := errors.Join(err, out.events(step.Events)); err != nil {
			return err
		}
	}
	return nil
}

// begin returns the query to follow by: after --after, or else after the newest state, which is printed if wanted.
func (f followCommand) begin(ctx context.Context, server *client.Client, out *eventPrinter) (client.Query, error) {
	q := f.query()
	if f.After != nil {
		if f.Snapshot {
			return q, misused("--after and --snapshot both say where to begin; give one")
		}
		q.After = event.ID(*f.After)
		return q, nil
	}
	path := f.Path
	if !f.Snapshot && path == "" {
		path = nowhere
	}
	snapshot, err := server.Snapshot(ctx, path)
	if err == nil && f.Snapshot {
		err = out.snapshot(&snapshot)
	}
	q.After = snapshot.EventID
	return q, err
}

// nowhere is a path without an object: a snapshot of it is only a stamp.
const nowhere = "/-/nowhere"

// eventPrinter prints events as they come.
type eventPrinter struct {
	format
	console console
	w       *bufio.Writer
	all     []any // what --output json prints as one document
}

func (p *eventPrinter) events(events []event.Event) error {
	switch p.Output {
	case "json":
		for i := range events {
			p.all = append(p.all, events[i])
		}
		return nil
	case "jsonl":
		return printLines(p.console.out, events)
	}
	for i := range events {
		e := &events[i]
		p.row(e.ID, e.Type, e.Key, e.Fields, originText(e))
	}
	return p.w.Flush()
}

// originText returns where an event comes from, as its fields are printed.
func originText(e *event.Event) string {
	var parts []string
	if id := e.Cause.ID(); id != 0 {
		parts = append(parts, fmt.Sprintf("cause=%d", id))
	}
	if e.By != "" {
		parts = append(parts, "by="+e.By)
	}
	return strings.Join(parts, " ")
}

func (p *eventPrinter) snapshot(s *client.Snapshot) error {
	switch p.Output {
	case "json":
		for i := range s.Objects {
			p.all = append(p.all, s.Objects[i])
		}
		return nil
	case "jsonl":
		return printLines(p.console.out, s.Objects)
	}
	for i := range s.Objects {
		o := &s.Objects[i]
		p.row(o.EventID, o.LastType, o.Key, o.Fields, "")
	}
	return p.w.Flush()
}

// row prints one line; its columns are of fixed width, since the lines to come are not known.
func (p *eventPrinter) row(id event.ID, typeName string, key event.Key, fields []byte, origin string) {
	rest := strings.TrimSpace(origin + " " + fieldsText(fields))
	fmt.Fprintf(p.w, "%d  %s  %-18s  %-28s  %s\n", id, id.Time().Local().Format("15:04:05.000000"), typeName, keyText(key), rest)
}

func (p *eventPrinter) end() error {
	if p.Output != "json" {
		return nil
	}
	if p.all == nil {
		p.all = []any{}
	}
	return printJSON(p.console.out, p.all)
}
