package order

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/notifier"
	"github.com/millrace/millrace/shared/store"
)

// Ear hears, in a process that does not follow the journal, of the events that it writes, and wakes somebody who lets the orders go on
// that wait for them. Its methods may be called concurrently.
//
// It knows which events orders have ever waited for by reading them once a minute, while it hears any. So a wait of a new kind may
// be unknown for a minute: then the sweep finds it, as it finds what a lost notice was for.
type Ear struct {
	store    store.Store
	notifier notifier.Notifier
	now      func() time.Time
	log      *slog.Logger

	mu     sync.Mutex
	shapes []shape
	read   time.Time // when the shapes were read
	woken  time.Time // what is written before this, somebody looks at after it
}

const (
	earAge   = time.Minute // how old the shapes may be
	earPause = time.Second // between two notices of one process
)

// NewEar returns an Ear on a store, which sends its notices to n.
func NewEar(s store.Store, n notifier.Notifier, log *slog.Logger) *Ear {
	return &Ear{store: s, notifier: n, now: time.Now, log: log}
}

// Hear wakes somebody a second later, if an order may wait for one of some events that were written. Until then one notice is
// enough for all.
func (e *Ear) Hear(ctx context.Context, events []event.Event) {
	if !e.concerns(ctx, events) {
		return
	}
	e.mu.Lock()
	now := e.now()
	due := !now.Before(e.woken)
	if due {
		e.woken = now.Add(earPause)
	}
	at := e.woken
	e.mu.Unlock()
	if due {
		Wake(ctx, e.notifier, at, e.log)
	}
}

// concerns reports whether an order may wait for one of the events.
func (e *Ear) concerns(ctx context.Context, events []event.Event) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if now := e.now(); e.read.IsZero() || now.Sub(e.read) >= earAge {
		shapes, err := readShapes(ctx, e.store, func(store.Key, error) {}) // who looks for them logs what cannot be read
		if err != nil {
			e.log.Warn("it is not known what orders wait for; the sweep lets them go on", "error", err)
			return false
		}
		e.shapes, e.read = shapes, now
	}
	return slices.ContainsFunc(e.shapes, func(s shape) bool {
		return slices.ContainsFunc(events, func(happened event.Event) bool { return s.selects(&happened) })
	})
}

// Wake sends a notice that orders may be able to go on at a time. If it cannot be sent, the sweep does what it is for.
func Wake(ctx context.Context, n notifier.Notifier, at time.Time, log *slog.Logger) {
	if err := n.Notify(context.WithoutCancel(ctx), notifier.Notice{At: at, Orders: true}); err != nil {
		log.Warn("nobody was woken for the orders that can go on; the sweep lets them", "error", err)
	}
}

// Awake does what a notice of orders is for: what is due, acts on many too, and what waits for events.
func (e *Engine) Awake(ctx context.Context) error {
	if err := e.Sweep(ctx); err != nil {
		return err
	}
	return e.Match(ctx)
}
