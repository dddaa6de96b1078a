package main

import (
	"context"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/shared/event"
)

type snapshotCommand struct {
	remote
	format
	Path string `arg:"" optional:"" help:"Only objects whose key matches: /a the object, /a/ all below, /a/* its children, | between several."`
	At   *int64 `help:"As of this EventId; without it, the present." placeholder:"ID"`
}

func (snapshotCommand) Help() string {
	return `Examples:

    millrace snapshot
    millrace snapshot /packages/ --output json
    millrace snapshot /packages/ --at 1478257656606001
    millrace follow --after "$(millrace snapshot --output json | jq .eventId)"

Every object shows the fields of its events, of which the newest win. The snapshot's eventId is where to follow from.`
}

// Run prints the snapshot.
func (s snapshotCommand) Run(ctx context.Context, c console) error {
	return s.on(c, func(server *client.Client) error {
		snapshot, err := s.take(ctx, server)
		if err != nil {
			return err
		}
		return s.print(c, snapshot)
	})
}

func (s snapshotCommand) take(ctx context.Context, server *client.Client) (client.Snapshot, error) {
	if s.At != nil {
		return server.SnapshotAt(ctx, s.Path, event.ID(*s.At))
	}
	return server.Snapshot(ctx, s.Path)
}

func (s snapshotCommand) print(c console, snapshot client.Snapshot) error {
	switch s.Output {
	case "json":
		return printJSON(c.out, snapshot)
	case "jsonl":
		return printLines(c.out, snapshot.Objects)
	}
	err := table(c.out, "KEY\tLAST EVENT\tEVENT ID\tFIELDS", func(row func(...any)) {
		for _, o := range snapshot.Objects {
			row(keyText(o.Key), o.LastType, o.EventID, fieldsText(o.Fields))
		}
	})
	c.note("%s at EventId %d", count(len(snapshot.Objects), "object"), snapshot.EventID)
	return err
}
