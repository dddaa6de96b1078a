package main

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/shared/event"
)

// part is what a follower asks for, and a predicate of the events that it must therefore see.
type part struct {
	name  string
	query client.Query
	match func(*event.Event) bool
}

func parts() []part {
	everything := func(*event.Event) bool { return true }
	types := func(names ...string) func(*event.Event) bool {
		return func(e *event.Event) bool { return slices.Contains(names, e.Type) }
	}
	custom := []string{string(event.CustomEvent)} // not those of the server's life
	return []part{
		{"everything", client.Query{Types: custom}, everything},
		{"everything, one at a time", client.Query{Types: custom, Limit: 1}, everything},
		{"everything, by sevens", client.Query{Types: custom, Limit: 7}, everything},
		{"PackageInstalled", client.Query{Types: []string{"PackageInstalled"}}, types("PackageInstalled")},
		{
			"PackageUpgraded and …Removed, by threes",
			client.Query{Types: []string{"PackageUpgraded", "PackageRemoved"}, Limit: 3}, types("PackageUpgraded", "PackageRemoved"),
		},
		{
			"below /packages/", client.Query{Path: "/packages/"},
			func(e *event.Event) bool { return strings.HasPrefix(e.Key.Path, "/packages/") },
		},
		{"/dpkg alone", client.Query{Path: "/dpkg"}, func(e *event.Event) bool { return e.Key.Path == "/dpkg" }},
	}
}

// follower reads the journal while it grows.
type follower struct {
	part
	saw     []event.Event
	answers int
	retries atomic.Int64
	last    atomic.Int64
	err     error
	ended   chan struct{}
}

// at returns where the follower is.
func (f *follower) at() event.ID { return event.ID(f.last.Load()) }

// follow lets every follower begin at the beginning of the journal; they end with ctx.
func (p *performance) follow(ctx context.Context) error {
	for _, part := range parts() {
		f := &follower{part: part, ended: make(chan struct{})}
		f.query.Wait = time.Second
		c, err := p.server.Client(client.Options{OnRetry: func(error, time.Duration) { f.retries.Add(1) }})
		if err != nil {
			return err
		}
		p.followers = append(p.followers, f)
		go f.run(ctx, c)
	}
	return nil
}

func (f *follower) run(ctx context.Context, c *client.Client) {
	defer close(f.ended)
	defer c.Close()
	for step, err := range c.Follow(ctx, f.query) {
		if err != nil {
			f.err = err
			return
		}
		f.answers++
		f.saw = append(f.saw, step.Events...)
		f.last.Store(int64(step.Last))
	}
}
