package main

import (
	"context"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
)

// life tells on the journal that this server runs, stops, and has stopped. A server that ends otherwise tells nothing: the next
// one's start says that it did. Where several servers share a store, each tells of itself.
type life struct {
	began bool
	stop  sync.Once
	since event.ID // of the event that it stops
}

// tellWithin is how long a stop waits for its first event before it ends what waits for events.
const tellWithin = time.Second

// begin tells that the server runs. While the store cannot be reached, that must not keep the server from saying so.
func (n *node) begin(ctx context.Context) {
	if n.Store.Ping(ctx) == nil {
		_, n.life.began = n.tell(ctx, typed.SchedulerStateChanged(typed.ServerRunning))
	}
}

// drain tells that the server stops, and ends the requests that wait for events.
func (n *node) drain() {
	told := make(chan struct{})
	go func() {
		defer close(told)
		n.stopping()
	}()
	select {
	case <-told:
	case <-time.After(tellWithin):
	}
	n.Drain()
}

func (n *node) stopping() {
	n.life.stop.Do(func() {
		if n.life.began {
			n.life.since, _ = n.tell(context.Background(), typed.SchedulerStateChanged(typed.ServerStopping))
		}
	})
}

// close tells that the server has stopped, and closes the store.
func (n *node) close() error {
	if n.stopping(); n.life.since != 0 {
		n.tell(context.Background(), event.Event{Type: event.SchedulerClosed, Cause: event.CausedBy(n.life.since)})
	}
	return n.Close()
}

// tell appends an event, and returns its id. What cannot be told is logged.
func (n *node) tell(ctx context.Context, e event.Event) (id event.ID, told bool) {
	receipt, err := n.Journal.Emit(ctx, []event.Event{e}, nil)
	if err != nil {
		n.Log.Warn("the journal does not tell of this server", "event", e.Type, "error", err)
	}
	return receipt.FirstID, err == nil
}
