package main

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"os"

	"github.com/millrace/millrace/shared/config"
	"github.com/millrace/millrace/shared/definition"
)

type devCommand struct {
	Listen string `help:"Address to listen on; default 127.0.0.1:8080." default:"127.0.0.1:8080" placeholder:"HOST:PORT"`
	Data   string `help:"Directory of the embedded store. Default: a temporary one, removed at the end." placeholder:"DIR"`
	Empty  bool   `help:"Begin without the tasks, orders and events that give the dashboard something to show."`
}

func (devCommand) Help() string {
	return `The server for trying things out. It makes an admin token (unless MILLRACE_ADMIN_TOKEN gives one), prints it once with the
lines to paste into another terminal, declares a few sources, handlers, schedules and a job chain whose commands are harmless, fills them
with something to look at, unless told not to by --empty, and forgets everything when it ends.`
}

// Run serves until ctx ends.
func (d devCommand) Run(ctx context.Context, c console) (err error) {
	token := os.Getenv("MILLRACE_ADMIN_TOKEN")
	if token == "" {
		token = rand.Text()
		c.note("MILLRACE_ADMIN_TOKEN is not set: made a token for this run")
	}
	if d.Data == "" {
		if d.Data, err = os.MkdirTemp("", "millrace-dev-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(d.Data)) }()
		c.note("the data is kept in %s until the end", d.Data)
	}
	settings, err := config.Load(d.env(token))
	if err != nil {
		return err
	}
	if settings.Definitions, err = definition.Read("dev.yaml", demonstration); err != nil {
		return err
	}
	return serve(ctx, c, settings, d.Listen, func(url string) {
		welcome(c, url, token)
		if !d.Empty {
			go fillIn(ctx, c, remote{URL: url, Token: token})
		}
	})
}

// demonstration is the definitions that the server starts with.
//
//go:embed dev.yaml
var demonstration []byte

// env returns the server's environment: its store, its token and its log level, and nothing else.
func (d devCommand) env(token string) func(string) string {
	return func(name string) string {
		switch name {
		case "MILLRACE_STORE":
			return "pebble:" + d.Data
		case "MILLRACE_ADMIN_TOKEN":
			return token
		case "MILLRACE_LOG":
			return os.Getenv(name)
		}
		return ""
	}
}

func welcome(c console, url, token string) {
	fmt.Fprintf(c.out, `millrace is ready at %s

In another terminal:

    export MILLRACE_URL=%s MILLRACE_TOKEN=%s
    millrace follow &
    millrace emit ParcelShipped /parcels/17 carrier=dhl
    millrace task enqueue machine facts
    millrace schedule list

In a browser: %s/ (sign in with the token), and the API's description: %s/docs
Ctrl-C ends it.
`, url, url, token, url, url)
}
