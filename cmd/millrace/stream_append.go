package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"strconv"

	"github.com/millrace/millrace/client"
)

type streamAppend struct {
	remote
	format
	Stream  string   `arg:"" help:"Name of the stream."`
	Name    string   `arg:"" optional:"" help:"What happened, in past tense, such as \"Order was placed\"."`
	Payload []string `arg:"" optional:"" name:"field" help:"NAME=TEXT of the payload, or NAME:=JSON."`
	File    string   `short:"f" help:"Read events from a file, one whole event as JSON a line; - is standard input." placeholder:"FILE"`
	Batch   int      `help:"Events per append: each batch is appended as a whole or not at all." default:"100"`
	IDFile  string   `name:"id-file" help:"Where the producer's id is kept; made if it is not there. Default: in your configuration folder." placeholder:"FILE"`
	System  string   `help:"Name of this system in the events. Default: the host's name."`
	Version int64    `help:"Version of the event's structure." default:"1"`
	Once    string   `help:"A key of your choice: if the command is repeated with it and the same events within 24 hours, nothing is appended twice." placeholder:"KEY"`
}

func (streamAppend) Help() string {
	return `Examples:

    millrace stream append orders "Order was placed" order=17 total:=12.5
    millrace stream append orders --file events.jsonl

A stream belongs to the producer that began it: one with another id is refused (exit status 4). The id is kept in a file.`
}

// Run appends the events and prints where they went.
func (a streamAppend) Run(ctx context.Context, c console) error {
	if (a.Name == "") == (a.File == "") || a.Batch < 1 || a.Batch > 1000 {
		return misused("give either an event name or --file, and --batch from 1 to 1000")
	}
	return a.on(c, func(server *client.Client) error {
		file, err := identity(a.IDFile, "producer-id")
		if err != nil {
			return err
		}
		producer, err := client.NewProducer(server, a.Stream, file)
		if err != nil {
			return err
		}
		events, err := a.events(c, file)
		if err != nil {
			return err
		}
		for n := 0; len(events) > 0; n++ {
			batch := events[:min(a.Batch, len(events))]
			if err := a.send(ctx, c, producer, batch, n); err != nil {
				return err
			}
			events = events[len(batch):]
		}
		return nil
	})
}

func (a streamAppend) send(ctx context.Context, c console, p *client.Producer, batch []client.StreamEvent, n int) error {
	var all []client.Appended
	var err error
	if a.Once == "" {
		all, err = p.Append(ctx, batch...)
	} else {
		all, err = p.AppendOnce(ctx, a.Once+"-"+strconv.Itoa(n), batch...)
	}
	if err != nil {
		return err
	}
	return lined(c, a.format, all, func(e *client.Appended) string { return fmt.Sprintf("%s  %s %d", e.ID, e.Name, e.Sequence) })
}

// events returns the one event of the arguments, or those of the file.
func (a streamAppend) events(c console, idFile string) ([]client.StreamEvent, error) {
	if a.File != "" {
		return readStreamEvents(c, a.File)
	}
	payload, err := payloadOf(a.Payload)
	if err != nil {
		return nil, err
	}
	system, err := client.KeptID(idFile + "-system")
	if err != nil {
		return nil, err
	}
	at, zone := client.Now()
	return []client.StreamEvent{{
		Event:   client.StreamFact{Name: a.Name, Version: a.Version},
		System:  client.StreamSystem{ID: system, Name: a.systemName(), Time: at, Timezone: zone},
		Trigger: client.StreamTrigger{Type: "manual", Name: userName()},
		Payload: payload,
	}}, nil
}

// payloadOf returns the object that NAME=TEXT and NAME:=JSON make.
func payloadOf(fields []string) (json.RawMessage, error) {
	object := map[string]json.RawMessage{}
	for _, field := range fields {
		name, value, err := member(field)
		if err != nil {
			return nil, err
		}
		if !json.Valid([]byte(value)) {
			return nil, misused("%q: %s is not JSON", field, value)
		}
		object[name] = json.RawMessage(value)
	}
	return json.Marshal(object)
}

func (a streamAppend) systemName() string {
	if a.System != "" {
		return a.System
	}
	if host, err := os.Hostname(); err == nil && host != "" {
		return host
	}
	return "unnamed"
}

func userName() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "unnamed"
}

// readStreamEvents reads whole events.
func readStreamEvents(c console, name string) ([]client.StreamEvent, error) {
	in := c.in
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, usageError{err}
		}
		defer file.Close()
		in = file
	}
	var all []client.StreamEvent
	for d := json.NewDecoder(in); ; {
		var e client.StreamEvent
		err := d.Decode(&e)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, misused("%s: event %d: %v", name, len(all)+1, err)
		}
		all = append(all, e)
	}
}
