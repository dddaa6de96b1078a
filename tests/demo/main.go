package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/millrace/millrace/tests/process"
)

// patience is how long the whole may take.
const patience = 60 * time.Second

func main() {
	millrace := flag.String("millrace", "bin/millrace", "the program")
	events := flag.String("events", "events/demo/packages.jsonl", "the log to emit, one JSON object a line")
	writers := flag.Int("writers", 6, "how many emit at once")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	ctx, cancel := context.WithTimeout(ctx, patience)
	err := run(ctx, *millrace, *events, *writers)
	cancel()
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, millrace, events string, writers int) (err error) {
	log, err := readLog(events)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "millrace-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	server := &process.Server{Binary: millrace, Store: "pebble:" + filepath.Join(dir, "store"), Token: rand.Text()}
	if err := server.Start(ctx); err != nil {
		return err
	}
	p, err := play(ctx, server, log, writers)
	if stopped := server.Stop(); err == nil {
		err = stopped
	}
	if err != nil {
		return err
	}
	if err := p.reckon(log); err != nil {
		return err
	}
	if err := (&work{dir: dir, events: events}).perform(ctx, millrace); err != nil {
		return err
	}
	return (&files{work: work{dir: dir, events: events}}).perform(ctx, millrace)
}
