package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
)

// streamCommand is the commands for streams.
type streamCommand struct {
	Append streamAppend `cmd:"" help:"Append events to a stream, which the first event creates."`
	Read   streamRead   `cmd:"" help:"Print what this consumer has not acknowledged."`
	Ack    streamAck    `cmd:"" help:"Acknowledge an event, which this consumer has processed."`
	Tail   streamTail   `cmd:"" help:"Print what is appended, to one stream or to all, as it comes."`
	List   streamList   `cmd:"" help:"List the streams, their owners and their event names."`
	Replay streamReplay `cmd:"" help:"Move this consumer's offset, back so that events are read again."`
}

// identity is the file in which an id is kept, one for each user of a machine if none is named.
func identity(file, otherwise string) (string, error) {
	if file != "" {
		return file, nil
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", misused("no place to keep an id: name a file by --id-file")
	}
	return filepath.Join(dir, "millrace", otherwise), nil
}

// consuming are the flags of a consumer.
type consuming struct {
	remote
	Stream   string `arg:"" help:"Name of the stream."`
	Consumer string `help:"The consumer's UUID. Default: the id in --id-file." placeholder:"UUID"`
	IDFile   string `name:"id-file" help:"Where the consumer's id is kept; made if it is not there. Default: in your configuration folder." placeholder:"FILE"`
}

func (f consuming) consumer() (string, error) {
	if f.Consumer != "" {
		return f.Consumer, nil
	}
	file, err := identity(f.IDFile, "consumer-id")
	if err != nil {
		return "", err
	}
	return client.KeptID(file)
}

// as calls do with a client of the server and the consumer's id.
func (f consuming) as(c console, do func(server *client.Client, consumer string) error) error {
	return f.on(c, func(server *client.Client) error {
		id, err := f.consumer()
		if err != nil {
			return err
		}
		return do(server, id)
	})
}

type streamRead struct {
	consuming
	format
	Name  string        `help:"Only events of this name. Default: of all, in the stream's order."`
	Limit int           `short:"n" help:"At most so many." default:"100" placeholder:"N"`
	Wait  time.Duration `help:"How long to wait for a first event." placeholder:"TIME"`
	Ack   bool          `help:"Acknowledge each once it is printed."`
}

// Run prints the events.
func (r streamRead) Run(ctx context.Context, c console) error {
	return r.as(c, func(server *client.Client, id string) error {
		events, err := server.ReadStream(ctx, client.StreamQuery{Stream: r.Stream, Consumer: id, Name: r.Name, Limit: r.Limit, Wait: r.Wait})
		if err != nil {
			return err
		}
		if err := lined(c, r.format, events, streamLine); err != nil || !r.Ack {
			return err
		}
		for _, e := range events {
			if _, err := server.Acknowledge(ctx, id, r.Stream, e.Event.ID); err != nil {
				return err
			}
		}
		return nil
	})
}

func streamLine(e *client.StreamEvent) string {
	return fmt.Sprintf("%s  %s  %s %d  %s", e.Event.ID, e.EventID.Time().Local().Format("15:04:05.000000"), e.Event.Name, e.Sequence, e.Payload)
}

type streamAck struct {
	consuming
	ID string `arg:"" help:"Id of the event, the next one of its name."`
}

// Run acknowledges the event.
func (a streamAck) Run(ctx context.Context, c console) error {
	return a.as(c, func(server *client.Client, id string) error {
		offset, err := server.Acknowledge(ctx, id, a.Stream, a.ID)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(c.out, offset)
		return err
	})
}

type streamReplay struct {
	consuming
	Name   string `arg:"" help:"Name of the events."`
	Offset int64  `arg:"" help:"The last sequence that counts as acknowledged; 0 is the beginning."`
}

// Run moves the offset.
func (r streamReplay) Run(ctx context.Context, c console) error {
	return r.as(c, func(server *client.Client, id string) error {
		return server.MoveOffset(ctx, id, r.Stream, r.Name, r.Offset)
	})
}

type streamList struct {
	remote
	format
}

// Run prints the streams.
func (l streamList) Run(ctx context.Context, c console) error {
	return l.on(c, func(server *client.Client) error {
		return list(c, l.format, "streams", server.Streams(ctx), "STREAM\tPRODUCER\tEVENTS\tNAMES", func(s *client.Stream) []any {
			names := strconv.Itoa(len(s.Names))
			if s.More {
				names += "+"
			}
			return []any{s.Stream, s.Producer, s.Events, names}
		})
	})
}

type streamTail struct {
	remote
	format
	Stream string        `arg:"" optional:"" help:"Name of the stream. Default: all streams."`
	After  *int64        `help:"EventId to begin after; 0 is the beginning. Default: only what comes from now on." placeholder:"ID"`
	Count  *int          `short:"n" help:"End after so many events." placeholder:"N"`
	Idle   time.Duration `help:"End when no event has come for so long." placeholder:"TIME"`
}

func (streamTail) Help() string {
	return `It moves no consumer's offset. It follows the journal, which has an event for each append, and goes back as far as the journal does.`
}

// Run prints events until ctx ends, which is not an error.
func (t streamTail) Run(ctx context.Context, c console) error {
	if err := atLeastOne("count", t.Count); err != nil {
		return err
	}
	return t.on(c, func(server *client.Client) error {
		if t.Stream != "" { // the journal would wait for events of any name
			if _, err := server.Stream(ctx, t.Stream); err != nil {
				return err
			}
		}
		return t.print(ctx, server, c)
	})
}

func (t streamTail) print(ctx context.Context, server *client.Client, c console) error {
	q := client.Query{Types: []string{event.StreamAppended}, Wait: t.Idle}
	if t.After != nil {
		q.After = event.ID(*t.After)
	} else {
		now, err := server.Snapshot(ctx, nowhere)
		if err != nil {
			return err
		}
		q.After = now.EventID
	}
	printed := 0
	for step, err := range server.Follow(ctx, q) {
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case len(step.Events) == 0 && step.Snapshot == nil && t.Idle > 0:
			return nil
		}
		for i := range step.Events {
			if e := &step.Events[i]; t.Stream != "" && e.Key.Path != t.Stream {
				continue
			}
			if err := t.show(ctx, server, c, &step.Events[i]); err != nil {
				return err
			}
			if printed++; t.Count != nil && printed == *t.Count {
				return nil
			}
		}
	}
	return nil
}

// show fetches and prints the event that the journal tells of.
func (t streamTail) show(ctx context.Context, server *client.Client, c console, told *event.Event) error {
	e, err := server.StreamEvent(ctx, typed.ReadStreamAppended(told).ID)
	if err != nil {
		return err
	}
	if t.Output != "table" {
		return printLines(c.out, []client.StreamEvent{e})
	}
	_, err = fmt.Fprintf(c.out, "%s  %s\n", e.Stream, streamLine(&e))
	return err
}

// percent returns a share with the sign %.
func percent(share float64) string { return strconv.FormatFloat(share, 'f', -1, 64) + " %" }
