package order

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/clock"
	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
)

// The errors of an Engine, to be compared by errors.Is; their texts say what to do. Others are those of packages queue and journal.
var (
	// ErrNoChain is returned for a job chain that is not declared.
	ErrNoChain = errors.New("order: no such job chain")
	// ErrNoOrder is returned for an order that does not exist.
	ErrNoOrder = errors.New("order: no such order")
	// ErrNoNode is returned for a node that the order's chain does not have.
	ErrNoNode = errors.New("order: no such node")
	// ErrNoEndNode is an [ErrNoNode] of a request's end node.
	ErrNoEndNode = fmt.Errorf("%w", ErrNoNode)
	// ErrNoVersion is returned for a version that a job chain does not have.
	ErrNoVersion = errors.New("order: no such version")
	// ErrNodeGone is an [ErrNoNode] of a version to which an order is to move.
	ErrNodeGone = fmt.Errorf("%w", ErrNoNode)
	// ErrExists is returned by Add if there is an order of the chain with that id.
	ErrExists = errors.New("order: the chain has an order with this id")
	// ErrState is returned for an act that an order cannot do as it is, or that would change nothing.
	ErrState = errors.New("order: not possible in this state")
	// ErrInvalid is returned for a request that is not valid; its text names the field.
	ErrInvalid = errors.New("order: invalid request")
	// ErrTooLarge is returned for variables that take more than [MaxVariables] bytes. It is an [ErrInvalid] too.
	ErrTooLarge = fmt.Errorf("%w: too large", ErrInvalid)
)

// Definitions returns the set in force: Current may return one that is some seconds old, Refresh does not.
type Definitions interface {
	Current(ctx context.Context) (*definition.Set, error)
	Refresh(ctx context.Context) (*definition.Set, error)
}

// Options of an Engine. Store and Definitions are required.
type Options struct {
	Store       store.Store
	Definitions Definitions
	Journal     Journal          // where orders wait for events, and [Engine.ActOnAll] selects them; default: there is neither
	Clock       *clock.Watch     // compares this process's clock with the store's; default: the clock is trusted
	Now         func() time.Time // default: Clock.Now
	Log         *slog.Logger     // default: discards
}

// Engine moves orders along the nodes of their chains. It is one process's access to the orders of a store. Its methods may be
// called concurrently.
type Engine struct {
	store       store.Store
	definitions Definitions
	journal     Journal
	clock       *clock.Watch
	now         func() time.Time
	log         *slog.Logger
	queue       *queue.Queue
	versions    versions
	chains      chains
	alarms      alarms
	inline      inline
	waits       waiting
	mending     mending
	name        string        // of this process among those that do acts on many
	acting      chan struct{} // full during a batch of such an act
}

// Open returns an Engine. It is to be given to the queue as [queue.Options.Steps], and the queue to it by [Engine.Use] before any
// other call.
func Open(o Options) *Engine {
	e := &Engine{store: store.NewChecked(o.Store), definitions: o.Definitions, journal: o.Journal, clock: o.Clock, now: o.Now, log: o.Log, name: rand.Text(), acting: make(chan struct{}, 1)}
	if o.Store.Exclusive() {
		e.name = "alone" // after a kill it goes on with an act at once
	}
	e.alarms.set = make(chan struct{}, 1)
	e.waits.set = make(chan struct{}, 1)
	if e.now == nil {
		e.now = o.Clock.Now
	}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	return e
}

// Use sets the queue of the orders' steps. The engine's own calls of the store are then repeated while the store is busy, too.
func (e *Engine) Use(q *queue.Queue) { e.queue, e.store = q, q.Patient() }

// token returns a write token that no other write ever has.
func (e *Engine) token() string { return "o" + rand.Text() }

// micro returns the time in microseconds since 1970.
func (e *Engine) micro() int64 { return e.now().UnixMicro() }

// get reads items, nil for those that do not exist.
func (e *Engine) get(ctx context.Context, keys ...store.Key) ([]*store.Item, error) {
	items, err := e.store.Get(ctx, keys...)
	if err != nil {
		return nil, journal.Failure("read orders", err)
	}
	return items, nil
}

// cached is a value and when it was read.
type cached[T any] struct {
	value T
	at    int64
}

// within reports whether the value was read at most so long before now, in microseconds since 1970.
func (c cached[T]) within(age time.Duration, now int64) bool {
	return now-c.at < age.Microseconds() && now >= c.at
}

// cache is a map of at most maxCached entries, which is emptied when it is full.
type cache[T any] struct {
	mu   sync.Mutex
	kept map[string]cached[T]
}

const maxCached = 4096

func (c *cache[T]) get(key string) (cached[T], bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, ok := c.kept[key]
	return found, ok
}

func (c *cache[T]) put(key string, value T, at int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept == nil || len(c.kept) >= maxCached {
		c.kept = map[string]cached[T]{}
	}
	c.kept[key] = cached[T]{value, at}
}

func (c *cache[T]) drop(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.kept, key)
}
