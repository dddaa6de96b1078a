package queue

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/shared/clock"
	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/groupcommit"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/limit"
	"github.com/millrace/millrace/shared/lock"
	"github.com/millrace/millrace/shared/notifier"
	"github.com/millrace/millrace/shared/queue/directory"
	"github.com/millrace/millrace/shared/queue/fair"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/queue/rule"
	"github.com/millrace/millrace/shared/queue/view"
	"github.com/millrace/millrace/shared/store"
)

// Definitions returns the set in force, which may be some seconds old.
type Definitions interface {
	Current(ctx context.Context) (*definition.Set, error)
}

// Options of a Queue. Store, Journal and Definitions are required.
type Options struct {
	Store       store.Store
	Journal     *journal.Journal // on Store; among its folds is [projection.Work], which tells sweeps what runs
	Definitions Definitions
	Notifier    notifier.Notifier // the notifier of other workers; default: nobody is notified
	Clock       *clock.Watch      // compares this process's clock with the store's; default: the clock is trusted
	Now         func() time.Time  // default: Clock.Now
	Log         *slog.Logger      // default: discards
	Random      io.Reader         // source of ids and tokens; default crypto/rand
	// Instances returns the instances that may claim tasks. Default: some instance runs each job, and each name that a task
	// prefers has free capacity.
	Instances func(ctx context.Context) ([]Claimer, error)
	// Heard is called with the holder of a lease when it sends a heartbeat or completes the task. Default: not called.
	Heard func(ctx context.Context, instance string)
	// Steps is told of the end of each task that is an order's step. Default: such a task ends as others do.
	Steps   Steps
	History time.Duration // how long finished tasks are kept that leave a history; 0 or less, the default: for ever
	// Quiet is how long an empty line (the ready index of a queue, or of a job that instances run) must have had no addition
	// before it is forgotten. Default 30 minutes: far longer than a write takes, and than clocks of processes may differ.
	Quiet time.Duration
	// OnePart says that the store has no partitions of which each bears only so much, as PostgreSQL. Default: lines to which much is
	// added lie in several partitions, and a claim that loses to one of another process goes on some tasks further down, unless the
	// process has the store to itself.
	OnePart bool

	// Parts is in how many partitions a line lies at most: 1, 2, 4, 8 or 16. Default 16; only measurements set another.
	Parts int

	// SharedAt is how many tasks that a process claims from a line of several parts a second are worth that it shares the line out with
	// others. Default 60.
	SharedAt int

	// Lasting says that the process goes on after a call, so that what nobody waits for may be done behind it, until [Queue.Close].
	// Default: it may be stopped whenever no call is under way, as a function is between its invocations.
	Lasting bool
}

// Queue is one process's access to the tasks of a store. Its methods may be called concurrently.
type Queue struct {
	*view.Tasks // what can be read of tasks

	store       *patient
	journal     *journal.Journal
	definitions Definitions
	notifier    notifier.Notifier
	clock       *clock.Watch
	now         func() time.Time
	log         *slog.Logger
	randomness  io.Reader
	instances   func(ctx context.Context) ([]Claimer, error)
	heard       func(ctx context.Context, instance string)
	steps       Steps
	history     time.Duration
	leftover    sync.Map // where earlier sweeps of the history have stopped, by group

	process string // the random part of this process's write tokens
	tokens  atomic.Uint64
	last    atomic.Int64 // the newest creation time given

	combiner  *groupcommit.Group[*joined]
	pacer     groupcommit.Pacer // of the combiner
	limits    *limit.Limits
	strategy  strategy
	rules     *rule.Book
	rulesRead renewal // of the rules
	leases    leases
	added     addedTasks // where other processes share the store
	turns     *fair.Turns
	limited   lock.Keyed // claims of a queue with a limit, by its name
	askings   *groupcommit.Keyed[string, *asking]
	promoting lock.Mutex
	known     *directory.Directory
	parts     parts
	onePart   bool // [Options.OnePart]
	maxOps    int  // operations that the parts of a write have together at most
	maxClaim  int  // tasks that a write of a claim starts at most
	lasting   bool // [Options.Lasting]
	crowds    crowds
	turn      atomic.Uint64 // which line is first at the next claim
	stopped   listeners
	watchers  watchers
	waiters   waiters
	broadcast broadcast
	outlook   outlook
	measured  measured
	alarms    alarms
	sweeps    atomic.Bool    // this process sweeps, and has folded the journal
	lookOuts  sync.WaitGroup // the look-out of those that wait
	behind    afterwards     // what is left to be done after a call
}

// Open returns a Queue. It does not call the store yet.
func Open(o Options) *Queue {
	q := &Queue{
		journal: o.Journal, definitions: o.Definitions, notifier: o.Notifier, clock: o.Clock, now: o.Now, log: o.Log,
		randomness: o.Random, instances: o.Instances, heard: o.Heard, steps: o.Steps, history: o.History,
	}
	if q.heard == nil {
		q.heard = func(context.Context, string) {}
	}
	q.store = &patient{store.NewChecked(o.Store), q}
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
	q.promoting = lock.New()
	alone := o.Store.Exclusive()
	q.maxOps = q.store.MaxOps() - journalOps
	q.maxClaim = q.maxOps / opsOfStart
	q.limits = limit.New(q.store, alone)
	q.turns = fair.New(q.store, q.now, alone)
	q.known = directory.New(directory.Options{
		Store: q.store, Apply: q.apply, Now: q.now, Created: q.created, Quiet: cmp.Or(o.Quiet, 30*time.Minute), Alone: alone, Log: q.log,
	})
	q.onePart, q.lasting = o.OnePart, o.Lasting
	q.parts.q, q.parts.on, q.parts.quiet = q, !alone && !o.OnePart, cmp.Or(o.Quiet, 30*time.Minute)
	q.parts.most = cmp.Or(o.Parts, layout.MostParts)
	q.parts.share = cmp.Or(o.SharedAt, sharedAt)
	q.parts.lines, q.parts.groups = map[layout.Line]*lineParts{}, map[uint32]bool{}
	q.rules = rule.New(rule.Options{Store: q.store, Journal: q.journal, Now: q.now, Apply: q.apply, Alone: alone})
	q.Tasks = view.New(view.Options{
		Store: q.store, Journal: q.journal, Definitions: q.definitions, Now: q.now, Rulebook: q.rules, Limits: q.limits,
		Lines: q.known.Of, Runners: q.runners,
	})
	q.strategy = &shared{q: q, pickings: newPickings()}
	if alone {
		q.strategy = newAlone(q)
	}
	q.combiner, q.askings = q.newCombiner(!alone), q.newAskings()
	q.crowds.joint = q.newJoint()
	q.broadcast.begin(q, o.Notifier)
	return q
}

// micro returns the time in microseconds since 1970.
func (q *Queue) micro() int64 { return q.now().UnixMicro() }

// mayDecide returns nil if this process may decide by its clock, for all processes, what is due and which leases are over.
func (q *Queue) mayDecide(ctx context.Context) error {
	return layout.Failure("go by this process's clock", q.clock.Check(ctx))
}

// compareClock compares this process's clock with the store's date, so that q.now corrects the offset, which is enough for
// a change of a single task. The error says that the offset is not known.
func (q *Queue) compareClock(ctx context.Context) error {
	err := q.clock.Check(ctx)
	if _, skewed := errors.AsType[*clock.Skew](err); skewed {
		return nil
	}
	return layout.Failure("compare this process's clock", err)
}

// created returns the time in microseconds since 1970; each call returns a later one.
func (q *Queue) created() int64 {
	for {
		last := q.last.Load()
		next := max(q.micro(), last+1)
		if q.last.CompareAndSwap(last, next) {
			return next
		}
	}
}

// token returns a write token that no other write ever has.
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

// shortPause is the longest first pause after a conflict.
const shortPause = 8 * time.Millisecond

// pause waits for a random time, so that writers that met in a conflict do not meet again.
func (q *Queue) pause(ctx context.Context) { q.pauseUpTo(ctx, shortPause) }

func (q *Queue) pauseUpTo(ctx context.Context, most time.Duration) {
	timer := time.NewTimer(time.Duration(q.random()) % most)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// notify wakes instances that wait in this process, or else in others, and sends the other notifications to the notifier. If that
// fails, the sweep notifies again: the work is in the store.
func (q *Queue) notify(ctx context.Context, notices []notifier.Notice) {
	notices, elsewhere := q.waiters.hear(notices, q.now())
	q.broadcast.tell(ctx, elsewhere)
	if q.notifier == nil || len(notices) == 0 {
		return
	}
	if err := q.notifier.Notify(context.WithoutCancel(ctx), notices...); err != nil {
		q.log.Warn("the notifier was not called; the sweep notifies again", "notices", len(notices), "error", err)
	}
}

// Close ends every [Queue.Wait], waits for what the queue does by itself for these, and returns nil. Other calls end by themselves;
// each returns when its write has ended.
func (q *Queue) Close() error {
	q.Drain()
	q.lookOuts.Wait()
	q.behind.close()
	return nil
}

// afterwards is what is done after the calls that have left it.
type afterwards struct {
	mu     sync.Mutex
	closed bool
	all    sync.WaitGroup
}

// do does something, unless the process is about to end.
func (b *afterwards) do(something func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.all.Go(something)
	}
}

// close waits for what is being done.
func (b *afterwards) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.all.Wait()
}

// apply writes operations without the journal, all of them or none. Errors are the store's.
func (q *Queue) apply(ctx context.Context, ops ...store.Op) error {
	return q.store.Write(ctx, store.Write{Token: q.token(), Ops: ops})
}

// commit writes a change of tasks and its events to the journal, unless there is nothing to write.
func (q *Queue) commit(ctx context.Context, prepare journal.Prepare) error {
	_, err := q.journal.Write(ctx, prepare)
	q.doubtIf(err)
	if errors.Is(err, errNothing) {
		return nil
	}
	return err
}

// listeners are told of requests to stop made in this process, so that a running task learns of one before its next heartbeat.
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

// StopRequested returns a channel that is closed when this process receives a request to stop or remove the task of that
// lease, and a function that forgets the channel. Heartbeats return requests that other processes received.
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
