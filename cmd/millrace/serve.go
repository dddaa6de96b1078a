package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"github.com/millrace/millrace/shared/config"
)

type serveCommand struct {
	Listen string `help:"Address to listen on; default 127.0.0.1:8080." default:"127.0.0.1:8080" placeholder:"HOST:PORT"`
	Data   string `help:"Directory of the embedded store; default millrace-data." placeholder:"DIR" xor:"store"`
	Store  string `help:"Store to use instead: pebble:DIR or dynamodb:PREFIX ($MILLRACE_STORE)." placeholder:"URL" xor:"store"`
	Bell   string `help:"How workers are woken: local, or sqs:QUEUE where several processes share a store ($MILLRACE_BELL)." placeholder:"URL"`
	Config string `help:"Path of millrace.yaml." env:"MILLRACE_CONFIG" placeholder:"FILE"`
}

// defaultData is where the embedded store lies if nothing else is said.
const defaultData = "millrace-data"

func (serveCommand) Help() string {
	return `Examples:

    MILLRACE_ADMIN_TOKEN=… millrace serve --data /var/lib/millrace
    millrace serve --store dynamodb:millrace --config millrace.yaml

Tokens come from MILLRACE_ADMIN_TOKEN, MILLRACE_TOKENS and the configuration file; without any, the server does not start. Logs
go to standard error, as JSON unless that is a terminal; MILLRACE_LOG sets the level. SIGTERM lets requests under way end.`
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

// env answers the environment with the flags laid over it.
func (s serveCommand) env(name string) string {
	switch name {
	case "MILLRACE_STORE":
		return s.storeURL()
	case "MILLRACE_BELL":
		return cmp.Or(s.Bell, os.Getenv(name))
	case "MILLRACE_CONFIG":
		return s.Config
	}
	return os.Getenv(name)
}

// storeURL answers the store to open: what a flag says counts more than the environment.
func (s serveCommand) storeURL() string {
	if s.Data != "" {
		return "pebble:" + s.Data
	}
	return cmp.Or(s.Store, os.Getenv("MILLRACE_STORE"), "pebble:"+defaultData)
}

// serve runs a node with these settings until ctx ends.
func serve(ctx context.Context, c console, settings config.Settings, address string, ready func(url string)) error {
	log := config.Logger(c.err, settings.Level)
	n, err := openNode(ctx, settings, log)
	if err != nil {
		return err
	}
	if err := n.Store.Ping(ctx); err != nil {
		log.Warn("the store cannot be used; requests are answered 503 until it can", "store", settings.Store, "error", err)
	}
	return errors.Join(n.serve(ctx, address, ready), n.Close())
}

// listen binds the address; where that fails it says what to do.
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
