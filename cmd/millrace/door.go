package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/config"
	"github.com/millrace/millrace/shared/store"
)

// door is the handler at the server's address: at first an API that only says that the server is not ready, then a node's.
type door struct {
	mu     sync.Mutex
	inside http.Handler
	drain  func() // the node's; nil while there is none
	closed bool
}

func newDoor(settings config.Settings, log *slog.Logger) *door {
	return &door{inside: api.Unready(api.Options{Accept: settings.Accepted, Log: log, Origins: settings.CORS.Origins},
		"the server is still opening its store, or waits for free space on its disk; try again")}
}

// admit passes requests to a node from now on.
func (d *door) admit(n *node) {
	d.mu.Lock()
	d.inside, d.drain = n.handler, n.drain
	closed := d.closed
	d.mu.Unlock()
	if closed {
		n.drain()
	}
}

// ServeHTTP passes the request on.
func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	inside := d.inside
	d.mu.Unlock()
	inside.ServeHTTP(w, r)
}

// close drains the node: at once if there is one, else as soon as it is admitted.
func (d *door) close() {
	d.mu.Lock()
	drain := d.drain
	d.closed = true
	d.mu.Unlock()
	if drain != nil {
		drain()
	}
}

// The pauses between two attempts to open a store for which the disk has too little space.
const (
	firstWait = time.Second
	lastWait  = 5 * time.Second
)

// awaitNode calls open until the disk has space for the store, and returns what it returns then, or the error of ctx when that ends.
func awaitNode(ctx context.Context, open func() (*node, error), log *slog.Logger) (*node, error) {
	for pause := firstWait; ; pause = min(2*pause, lastWait) {
		n, err := open()
		if !errors.Is(err, store.ErrNoRoom) {
			return n, err
		}
		log.Warn("the store cannot be opened; requests get a 503 until it can", "error", err, "pause", pause)
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		}
	}
}
