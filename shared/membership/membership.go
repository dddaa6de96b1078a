package membership

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

// DefaultLease is how long an instance stays a member without a heartbeat or a request.
const DefaultLease = 30 * time.Second

// The bounds of an instance's fields.
const (
	MaxName     = 255    // characters
	MaxJobs     = 100    // patterns
	MaxPattern  = 512    // bytes of one
	MaxCapacity = 10_000 // tasks at once
)

// The errors of a Membership, besides [journal.ErrUnavailable] and [journal.ErrIdempotencyMismatch].
var (
	// ErrNoInstance is returned for an instance that never existed, has left, or whose lease is over. It may register again.
	ErrNoInstance = errors.New("membership: no such instance")

	// ErrInvalid is returned for a field outside its bounds; its text names the field.
	ErrInvalid = errors.New("membership: invalid request")
)

// Options of a Membership. Store is required.
type Options struct {
	Store  store.Store
	Lease  time.Duration    // the length of instances' leases and of the leader's; default [DefaultLease]
	Clock  *clock.Watch     // compares this process's clock with the store's; default: not compared
	Now    func() time.Time // default: that of Clock
	Random io.Reader        // the source of ids; default crypto/rand
}

// Membership is one process's access to the instances. Its methods may be called concurrently, and in many processes.
type Membership struct {
	store   *store.Checked
	lease   time.Duration
	clock   *clock.Watch
	now     func() time.Time
	random  io.Reader
	process string
	writes  atomic.Uint64
	told    told
}

// Open returns a Membership. Nothing is read or written yet.
func Open(o Options) *Membership {
	t := &Membership{store: store.NewChecked(o.Store), lease: o.Lease, clock: o.Clock, now: o.Now, random: o.Random}
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

// time returns the time, and nil if this process's clock agrees with the store's, so that leases of others may be judged by it.
func (t *Membership) time(ctx context.Context) (now time.Time, off error) {
	off = t.clock.Check(ctx)
	return t.now(), off
}

func (t *Membership) newID() string {
	var b [8]byte
	if _, err := io.ReadFull(t.random, b[:]); err != nil {
		panic(err) // crypto/rand does not fail
	}
	return hex.EncodeToString(b[:])
}

// Where things lie in the table work:
//
//	instances   ID    an instance
//	instances   #     sequencer: its position counts registrations
//	leader      -     who leads; its version is the term
//	registered  HASH  an idempotency key, and the instance that it registered
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
	tries = 8 // how often a write is repeated whose outcome is unknown, or that conflicts with another
	pause = 5 * time.Millisecond
)

// write writes operations whose conditions make it safe to repeat them.
func (t *Membership) write(ctx context.Context, ops ...store.Op) (err error) {
	w := store.Write{Token: t.process + strconv.FormatUint(t.writes.Add(1), 36), Ops: ops}
	open := false // an earlier send may have been applied
	for range tries {
		err = t.store.Write(ctx, w)
		if conflict := store.AsConflict(err); open && conflict != nil && t.mine(ctx, w, conflict) {
			return nil
		}
		open = open || errors.Is(err, store.ErrUnknown)
		if !errors.Is(err, store.ErrBusy) && !errors.Is(err, store.ErrUnknown) || !wait(ctx) {
			return err
		}
	}
	return err
}

// mine reports whether a write conflicts with what it has put itself, also where the store does not tell what it has found.
func (t *Membership) mine(ctx context.Context, w store.Write, c *store.Conflict) bool {
	for n := range c.Failed {
		failed := &c.Failed[n]
		if failed.Found != nil {
			continue
		}
		items, err := t.store.Get(ctx, w.Ops[failed.Op].Item.Key)
		if err != nil {
			return false
		}
		failed.Found = items[0]
	}
	return w.Mine(c)
}

// wait waits for a pause; false means that ctx has ended.
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

// unavailable returns the journal's error for one of the store's, so that callers need not know those; nil for nil.
func unavailable(doing string, err error) error {
	return journal.Failure(doing, err)
}
