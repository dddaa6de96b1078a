package topology

import (
	"context"
	crand "crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/shared/clock"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
)

// DefaultLease is how long an instance is there without being heard of.
const DefaultLease = 30 * time.Second

// Limits of what an instance may say.
const (
	MaxName     = 255 // characters
	MaxJobs     = 100 // patterns
	MaxPattern  = 512 // bytes of one
	MaxCapacity = 10_000
)

// What the methods of a Topology answer when they do not answer nil, besides [journal.ErrUnavailable].
var (
	// ErrNoInstance is returned for an instance that was never there, has left, or was not heard of for its lease. It may
	// register again.
	ErrNoInstance = errors.New("topology: no such instance")

	// ErrInvalid is returned for a request that breaks a rule; its text names the field.
	ErrInvalid = errors.New("topology: invalid request")
)

// Options of a Topology. Store is needed.
type Options struct {
	Store  store.Store
	Lease  time.Duration    // default [DefaultLease]
	Clock  *clock.Watch     // what this process's clock is compared by; default: nothing
	Now    func() time.Time // default: that of Clock
	Random io.Reader        // what ids are made of; default crypto/rand
}

// Topology is one process's access to the instances. Its methods may be called concurrently, and in many processes.
type Topology struct {
	store   store.Store
	lease   time.Duration
	clock   *clock.Watch
	now     func() time.Time
	random  io.Reader
	process string
	writes  atomic.Uint64
	told    told
}

// Open answers a Topology. Nothing is read or written yet.
func Open(o Options) *Topology {
	t := &Topology{store: o.Store, lease: o.Lease, clock: o.Clock, now: o.Now, random: o.Random}
	if t.lease <= 0 {
		t.lease = DefaultLease
	}
	if t.now == nil {
		t.now = o.Clock.Now
	}
	if t.random == nil {
		t.random = crand.Reader
	}
	t.process = "i" + t.newID()
	return t
}

// time returns the time, and nil if this process's clock may decide for others by it.
func (t *Topology) time(ctx context.Context) (now time.Time, off error) {
	off = t.clock.Check(ctx)
	return t.now(), off
}

func (t *Topology) newID() string {
	var b [8]byte
	if _, err := io.ReadFull(t.random, b[:]); err != nil {
		panic(err) // crypto/rand does not fail
	}
	return hex.EncodeToString(b[:])
}

// Where things lie in the table work:
//
//	instances   ID    an instance
//	instances   #     sequencer: how often an instance has registered
//	leader      -     who leads; its version is the term
//	registered  HASH  what an idempotency key was answered
const (
	partitionInstances = "instances"
	partitionLeader    = "leader"
	partitionOnce      = "registered"
)

func instanceKey(id string) store.Key {
	return store.Key{Table: store.Work, Partition: partitionInstances, Sort: id}
}

var (
	leaderKey = store.Key{Table: store.Work, Partition: partitionLeader, Sort: "-"}
	termKey   = store.Key{Table: store.Work, Partition: partitionInstances, Sort: "#"}
)

const (
	tries = 8 // how often a write is repeated whose outcome is open, or that lost to another
	pause = 5 * time.Millisecond
)

// write writes operations of which each rests on a version, so that they may be repeated.
func (t *Topology) write(ctx context.Context, ops ...store.Op) (err error) {
	w := store.Write{Token: t.process + strconv.FormatUint(t.writes.Add(1), 36), Ops: ops}
	for range tries {
		err = t.store.Write(ctx, w)
		if !errors.Is(err, store.ErrBusy) && !errors.Is(err, store.ErrUnknown) || !wait(ctx) {
			return err
		}
	}
	return err
}

// wait waits a moment; false: ctx has ended.
func wait(ctx context.Context) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// unavailable wraps what the store said so that callers need not know the store's errors; nil stays nil.
func unavailable(doing string, err error) error {
	return journal.Failure(doing, err)
}
