package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/millrace/millrace/shared/config"
	"github.com/millrace/millrace/shared/host"
)

type serveCommand struct {
	Listen   string `help:"Address to listen on; default 127.0.0.1:8080." default:"127.0.0.1:8080" placeholder:"HOST:PORT"`
	Data     string `help:"Directory of the embedded store; default millrace-data." placeholder:"DIR" xor:"store"`
	Store    string `help:"Store to use instead: pebble:DIR, dynamodb:PREFIX or postgres://HOST/DATABASE ($MILLRACE_STORE)." placeholder:"URL" xor:"store"`
	Notifier string `name:"bell" help:"How workers are woken: local, or sqs:QUEUE where several processes share a store; a store in PostgreSQL needs none, but behind a pooler in transaction mode postgres:URL, of the database itself ($MILLRACE_BELL)." placeholder:"URL"`
	Drain    string `help:"How long a stop may take in all; default 8s ($MILLRACE_DRAIN, or drain in millrace.yaml)." placeholder:"DURATION"`
	Config   string `help:"Path of millrace.yaml." env:"MILLRACE_CONFIG" placeholder:"FILE"`
}

// ready is the line by which a server says where it is.
const ready = "millrace is ready at %s\n"

// defaultData is the directory of the embedded store if none is given.
const defaultData = "millrace-data"

func (serveCommand) Help() string {
	return `Examples:

    MILLRACE_ADMIN_TOKEN=… millrace serve --data /var/lib/millrace
    millrace serve --store dynamodb:millrace --config millrace.yaml

Tokens come from MILLRACE_ADMIN_TOKEN, MILLRACE_TOKENS, the configuration file and what MILLRACE_SECRETS names; without any, the server does not start. Logs
go to standard error, as JSON unless that is a terminal; MILLRACE_LOG sets the level.

Targets that are sent tasks by HTTP get an address to report to, the callback: below MILLRACE_URL, where they find this server, or
else the address of --listen. Set it where the server listens on 0.0.0.0, or a proxy is before it.

SIGTERM ends it within --drain: no connection is accepted and no task claimed any more, and long polls and streams end at once.
Other requests may take seven eighths of that time, tasks of this process three eighths; then the tasks are stopped and go back to
their queues with the attempts they had.`
}

// Run serves until ctx ends.
func (s serveCommand) Run(ctx context.Context, c console) error {
	settings, err := config.Load(s.env)
	if err != nil {
		return err
	}
	return serve(ctx, c, settings, s.Listen, func(url string) {
		fmt.Fprintf(c.out, ready, url)
	})
}

// env returns the value of an environment variable, or of the flag that overrides it.
func (s serveCommand) env(name string) string {
	switch name {
	case "MILLRACE_STORE":
		return s.storeURL()
	case "MILLRACE_BELL":
		return cmp.Or(s.Notifier, os.Getenv(name))
	case "MILLRACE_DRAIN":
		return cmp.Or(s.Drain, os.Getenv(name))
	case "MILLRACE_CONFIG":
		return s.Config
	}
	return os.Getenv(name)
}

// storeURL returns the store to open: a flag overrides the environment.
func (s serveCommand) storeURL() string {
	if s.Data != "" {
		return "pebble:" + s.Data
	}
	return cmp.Or(s.Store, os.Getenv("MILLRACE_STORE"), "pebble:"+defaultData)
}

// serve runs a node with these settings until ctx ends, and then until what is under way has ended or the drain time is over.
func serve(ctx context.Context, c console, settings config.Settings, address string, ready func(url string)) error {
	settings.Drain = cmp.Or(settings.Drain, host.DefaultDrain)
	listener, err := listen(address)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- serveOn(ctx, listener, config.Logger(c.err, settings.Level), settings, ready) }()
	late, cancel := over(ctx, settings.Drain)
	defer cancel()
	select {
	case err := <-ended:
		return err
	case <-late.Done():
		return fmt.Errorf("not everything had ended %s after the signal to stop; what still ran is left to its lease", settings.Drain)
	}
}

// serveOn serves requests from the start, and passes them to a node once its store is open.
func serveOn(ctx context.Context, listener net.Listener, log *slog.Logger, settings config.Settings, ready func(url string)) error {
	ctx, end := context.WithCancelCause(ctx)
	entrance := newDoor(settings, log)
	served := make(chan error, 1)
	go func() {
		server := host.Server{Handler: entrance, Log: log, OnDrain: entrance.close, DrainTime: settings.Drain * 7 / 8}
		err := server.Serve(ctx, listener)
		end(nil) // in case it has ended by itself
		served <- err
	}()
	n, err := awaitNode(ctx, func() (*node, error) { return openNode(ctx, settings, log) }, log)
	switch {
	case err == nil:
		if err := n.Store.Ping(ctx); err != nil {
			log.Warn("the store cannot be used; requests get a 503 until it can", "store", settings.Store, "error", err)
		}
		at := listener.Addr()
		err = n.run(ctx, end, at, func() { entrance.admit(n); ready(urlAt(at, loopback)) })
	case ctx.Err() != nil:
		err = nil // told to stop while it waited
	}
	end(nil)
	if err = errors.Join(err, <-served); errors.Is(context.Cause(ctx), errFailed) {
		err = errors.Join(errFailed, err)
	}
	if n != nil {
		err = errors.Join(err, n.close())
	}
	return err
}

// over returns a context that ends when ctx has been over for so long.
func over(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() { time.AfterFunc(d, cancel) })
	return late, cancel
}

// listen binds the address; its error says what to do about it.
func listen(address string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s is in use by another process; stop that one or give another --listen", address)
	}
	if err != nil {
		return nil, usageError{fmt.Errorf("--listen: %w", err)}
	}
	return listener, nil
}
