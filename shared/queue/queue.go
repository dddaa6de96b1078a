package queue

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/shared/bell"
	"github.com/millrace/millrace/shared/clock"
	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// Definitions return the set in force. It may be some seconds old.
type Definitions interface {
	Current(ctx context.Context) (*definition.Set, error)
}

// Options of a Queue. Store, Journal and Definitions are needed.
type Options struct {
	Store       store.Store
	Journal     *journal.Journal // on the same store
	Definitions Definitions
	Bell        bell.Bell        // default: none is rung
	Clock       *clock.Watch     // what says whether this process's clock may decide for others; default: it may
	Now         func() time.Time // default: that of Clock
	Log         *slog.Logger     // default: discards
	Random      io.Reader        // what ids and tokens are made of; default crypto/rand
	// Instances returns those that may be given tasks. Default: every job has one, and every name that a task prefers.
	Instances func(ctx context.Context) ([]Claimer, error)
	// Heard is told who holds a lease when its holder sends a heartbeat or says how the task ended. Default: nobody is.
	Heard   func(ctx context.Context, instance string)
	History time.Duration // how long finished tasks are kept that leave a history; default: for ever
	// Quiet is how long nothing was added to a line, the ready index of a queue or of a job of instances, before it is forgotten
	// if it is empty. Default 30 minutes: far longer than a write takes, and than clocks of processes may differ.
	Quiet time.Duration
}

// Queue is one process's access to the tasks of a store. Its methods may be called concurrently.
type Queue struct {
	store       store.Store
	journal     *journal.Journal
	definitions Definitions
	bell        bell.Bell
	clock       *clock.Watch
	now         func() time.Time
	log         *slog.Logger
	randomness  io.Reader
	instances   func(ctx context.Context) ([]Claimer, error)
	heard       func(ctx context.Context, instance string)
	history     time.Duration
	quiet       time.Duration
	leftover    leftover

	process string // the random part of this process's write tokens
	tokens  atomic.Uint64
	last    atomic.Int64 // the newest creation time given

	combiner  combiner
	windows   windows
	leases    leases
	permits   permits
	rules     rulebook
	virtual   virtualTimes
	due       dueTimes
	rivals    rivals
	limited   turnstile
	crowds    crowds
	promoting turnstile
	known     directory
	stopped   listeners
	waiters   waiters
	alarms    alarms
}

// Open returns a Queue. Nothing is read or written yet.
func Open(o Options) *Queue {
	q := &Queue{
		journal: o.Journal, definitions: o.Definitions, bell: o.Bell, clock: o.Clock, now: o.Now, log: o.Log,
		randomness: o.Random, instances: o.Instances, heard: o.Heard, history: o.History,
		quiet: cmp.Or(o.Quiet, 30*time.Minute),
	}
	if q.heard == nil {
		q.heard = func(context.Context, string) {}
	}
	q.store = &patient{o.Store, q}
	if q.now == nil {
		q.now = o.Clock.Now
	}
	if q.log == nil {
		q.log = slog.New(slog.DiscardHandler)
	}
	if q.randomness == nil {
		q.randomness = crand.Reader
	}
	var b [10]byte
	q.randomBytes(b[:])
	q.process = fmt.Sprintf("q%x", b)
	q.alarms.set = make(chan struct{}, 1)
	q.rules.mu, q.known.mu = newLatch(), newLatch()
	q.combiner.shared = !o.Store.Exclusive()
	return q
}

// micro returns the time in microseconds since 1970.
func (q *Queue) micro() int64 { return q.now().UnixMicro() }

// mayDecide returns nil if this process may decide by its clock what falls due and which leases are over, for all others.
func (q *Queue) mayDecide(ctx context.Context) error {
	return unavailable("go by this process's clock", q.clock.Check(ctx))
}

// compareClock has this process's clock compared with the store's date, so that q.now makes up for what it is off by: that does for
// what concerns a single task. The error says that nothing is known of it.
func (q *Queue) compareClock(ctx context.Context) error {
	err := q.clock.Check(ctx)
	if _, skewed := errors.AsType[*clock.Skew](err); skewed {
		return nil
	}
	return unavailable("compare this process's clock", err)
}

// created returns the time in microseconds, each time a later one.
func (q *Queue) created() int64 {
	for {
		last := q.last.Load()
		next := max(q.micro(), last+1)
		if q.last.CompareAndSwap(last, next) {
			return next
		}
	}
}

// token returns a name that no other write ever has.
func (q *Queue) token() string { return q.process + strconv.FormatUint(q.tokens.Add(1), 36) }

func (q *Queue) randomBytes(b []byte) {
	if _, err := io.ReadFull(q.randomness, b); err != nil {
		panic(err) // crypto/rand does not fail
	}
}

func (q *Queue) random() uint32 {
	var b [4]byte
	q.randomBytes(b[:])
	return binary.BigEndian.Uint32(b[:])
}

// shortPause is how long those who were in each other's way pause at most, at first.
const shortPause = 8 * time.Millisecond

// pause parts contenders.
func (q *Queue) pause(ctx context.Context) { q.pauseUpTo(ctx, shortPause) }

func (q *Queue) pauseUpTo(ctx context.Context, most time.Duration) {
	timer := time.NewTimer(time.Duration(q.random()) % most)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// ring rings the bell. A ring that fails is left to the sweep: the work is in the store.
func (q *Queue) ring(ctx context.Context, rings []bell.Ring) {
	rings = q.waiters.hear(rings, q.now())
	if q.bell == nil || len(rings) == 0 {
		return
	}
	if err := q.bell.Ring(context.WithoutCancel(ctx), rings...); err != nil {
		q.log.Warn("the bell was not rung; the sweep rings again", "rings", len(rings), "error", err)
	}
}

// load reads a task, without a payload that is kept apart. The error is [ErrNoTask] if there is none.
func (q *Queue) load(ctx context.Context, uuid string) (t task.Task, version int64, err error) {
	items, err := q.store.Get(ctx, taskKey(uuid))
	if err != nil {
		return t, 0, unavailable("read a task", err)
	}
	if items[0] == nil {
		return t, 0, ErrNoTask
	}
	return t, items[0].Version, decode(items[0], &t)
}

// Get returns a task with its payload. The error is [ErrNoTask] if there is none with exactly this id.
func (q *Queue) Get(ctx context.Context, id task.ID) (task.Task, error) {
	t, _, err := q.load(ctx, id.UUID())
	if err != nil {
		return t, err
	}
	if t.ID != id {
		return task.Task{}, ErrNoTask
	}
	if t.Apart > 0 {
		t.Payload, err = q.payload(ctx, id.UUID())
	}
	return t, err
}

func (q *Queue) payload(ctx context.Context, uuid string) (json.RawMessage, error) {
	items, err := q.store.Get(ctx, payloadKey(uuid))
	if err != nil {
		return nil, unavailable("read a payload", err)
	}
	if items[0] == nil {
		return nil, fmt.Errorf("queue: payload of %s: %w", uuid, errDamaged)
	}
	return items[0].Value, nil
}

var errDamaged = errors.New("queue: an item cannot be read: damaged, or written by a newer version")

func decode(item *store.Item, target any) error {
	if err := json.Unmarshal(item.Value, target); err != nil {
		return fmt.Errorf("%w: %v: %w", errDamaged, item.Key, err)
	}
	return nil
}

// unavailable wraps what the store said so that callers need not know the store's errors; nil stays nil. What the store does
// not take is [ErrInvalid].
func unavailable(doing string, err error) error {
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, journal.ErrUnavailable), errors.Is(err, ErrInvalid), errors.Is(err, ErrStale), errors.Is(err, ErrNoLease), errors.Is(err, ErrNoTask),
		errors.Is(err, ErrFinished), errors.Is(err, errDamaged):
		return err
	}
	switch err = journal.Failure(doing, err); {
	case errors.Is(err, journal.ErrTooLarge):
		return fmt.Errorf("%w: %w", ErrTooLarge, err)
	case errors.Is(err, journal.ErrInvalid):
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return err
}

// Close ends what runs in the background.
func (q *Queue) Close() error { return nil }

// listeners hear of requests to stop within this process, so that a running task learns of one before its next heartbeat.
type listeners struct {
	mu   sync.Mutex
	told map[string]chan struct{}
}

func (l *listeners) tell(token string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.told[token]; c != nil {
		close(c)
		delete(l.told, token)
	}
}

// StopRequested returns a channel that is closed when a stop of the task with that lease is asked for in this process, and
// a function that ends the interest in it. Heartbeats tell of every other request.
func (q *Queue) StopRequested(token string) (asked <-chan struct{}, done func()) {
	l := &q.stopped
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.told == nil {
		l.told = map[string]chan struct{}{}
	}
	c := make(chan struct{})
	l.told[token] = c
	return c, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.told, token)
	}
}
