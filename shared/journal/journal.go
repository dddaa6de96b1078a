package journal

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/store"
)

// Main is the name of the journal that exists by default.
const Main = "main"

// The errors of a Journal, to be compared by errors.Is.
var (
	// ErrUnknownOutcome is returned by appends when it could not be established whether the events are on the journal.
	// The caller tries again with the same idempotency key, or reads.
	ErrUnknownOutcome = errors.New("journal: the outcome of the append is not known")

	// ErrUnavailable is returned when the store cannot be reached or turns requests away; an append has changed nothing.
	ErrUnavailable = errors.New("journal: the store is not available")

	// ErrIdempotencyMismatch is returned by Emit when the idempotency key was used with another fingerprint.
	ErrIdempotencyMismatch = errors.New("journal: the idempotency key was used with another content")

	// ErrTooLarge is returned by appends whose events do not fit into one slot (2.7 MiB), or that change items which are
	// larger than the store takes. Nothing was changed, and a repetition fails too.
	ErrTooLarge = errors.New("journal: too large for one append")

	// ErrInvalid is returned by appends that the store refuses for another reason. Nothing was changed, and a repetition fails
	// too.
	ErrInvalid = errors.New("journal: the store does not take this")

	// ErrUnknownFold is returned by Snapshot for a name that Options.Folds does not have.
	ErrUnknownFold = errors.New("journal: no such fold")

	// ErrEvicted is returned by SnapshotAt for an EventId below the floor, or where an older version kept nothing that tells.
	ErrEvicted = errors.New("journal: what was then is not kept any more")

	// ErrBeyond is returned by SnapshotAt for an EventId above that of the newest event.
	ErrBeyond = errors.New("journal: nothing has happened so late yet")

	// ErrDamaged is returned when a slot or a part of a generation that must be there is missing or cannot be read.
	ErrDamaged = errors.New("journal: damaged")

	// ErrClosed is returned after Close, also by readers that were waiting.
	ErrClosed = errors.New("journal: closed")
)

// Timing holds the protocol's durations. One that is zero or negative means its default; only simulations set others.
type Timing struct {
	// Grace is how long a reader waits for a missing slot before it fills it. Only liveness rests on it. Default 150 ms.
	Grace time.Duration
	// Age is how long a ticket, or a strong read of the sequencer, permits writing slots, from the sending of the request.
	// Default 5 s.
	Age time.Duration
	// RemoveAfter is how long after the floor has passed a slot it may be removed; it must exceed Age, the life of a
	// request's signature (15 min) and the skew of clocks together. Default 24 h.
	RemoveAfter time.Duration
	// Poll is the pause between reads of the sequencer while a reader waits; it grows to five times that while nothing comes.
	// Default 50 ms.
	Poll time.Duration
	// Call bounds one write to a store that other processes share. Default 2 s.
	Call time.Duration
	// Append bounds one [Journal.Write] with all that it repeats, while the store is busy or away; what the slot holds then is asked for at
	// most Call longer. It also bounds how long a [Journal.Emit] waits for a write to share. Default 10 s.
	Append time.Duration
	// Reserve is how long writes reserve their tickets after one for which other processes were quicker, in a store in which they may take
	// them themselves. Default 1 s.
	Reserve time.Duration
}

func (t Timing) withDefaults() Timing {
	orDefault(&t.Grace, 150*time.Millisecond)
	orDefault(&t.Age, 5*time.Second)
	orDefault(&t.RemoveAfter, 24*time.Hour)
	orDefault(&t.Poll, 50*time.Millisecond)
	orDefault(&t.Call, 2*time.Second)
	orDefault(&t.Append, 10*time.Second)
	orDefault(&t.Reserve, time.Second)
	return t
}

// orDefault sets a value that is not positive, or an empty name, to its default.
func orDefault[T cmp.Ordered](value *T, otherwise T) {
	var zero T
	if *value <= zero {
		*value = otherwise
	}
}

// Options are those of a Journal. The zero value of each field means its default, and so does a negative number.
type Options struct {
	Name      string           // of the journal; several may share a store; default Main
	Now       func() time.Time // this process's clock, from which EventIds are made; default time.Now
	Log       *slog.Logger     // default: nothing is logged
	Folds     []Fold           // those that Snapshot can show, each with a name of its own; default: none
	Retention Retention        // how much of the journal Sweep keeps
	Timing    Timing           // the protocol's durations

	// Chunk is the size of the items that snapshot generations are stored in, in bytes. Default 256 KiB; simulations give
	// less, so that a small state takes many.
	Chunk int

	// Run is how many slots in a row share a partition where other processes share the store, as the store says: [ShortRun], the default,
	// [LongRun] or [PageRun].
	Run int64

	// Writers is how many appends without other changes are written side by side at most, where other processes share the store; the others
	// wait and share slots. Default 16; simulations give one.
	Writers int

	// Jitter returns a pause from 0 up to its argument, so that contenders do not collide again. Default: at random;
	// simulations give one that repeats itself.
	Jitter func(time.Duration) time.Duration
}

// Journal is one process's access to a journal. Its methods may be called concurrently.
type Journal struct {
	store  *store.Checked
	keys   keys
	now    func() time.Time
	log    *slog.Logger
	timing Timing
	jitter func(time.Duration) time.Duration
	chunk  int
	tail   *tail
	holes  holes
	found  located
	view   view
	past   past

	writing  atomic.Int64 // writes under way
	emits    *emits
	supposed supposition

	perSlot atomic.Int64 // how many events the slots have that were read last

	keep Retention
	hear func(context.Context, []event.Event) // see Announce; nil: nobody

	process string // the random part of this process's tokens
	tokens  atomic.Uint64

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	group  sync.WaitGroup // the goroutines that Close waits for
}

// Begun reports whether anything was ever appended to the journal [Main] of a store. It costs a read. Errors are the store's.
func Begun(ctx context.Context, s store.Store) (bool, error) {
	var k keys
	k.of(Main)
	seq, err := s.Sequence(ctx, k.sequencer(), false)
	if err != nil {
		return false, fmt.Errorf("journal: read the sequencer: %w", err)
	}
	return seq.Position > 0, nil
}

// Open returns a Journal on s, which the caller closes after the Journal. Nothing is read or written yet.
func Open(s store.Store, o Options) *Journal {
	orDefault(&o.Name, Main)
	orDefault(&o.Chunk, chunkSize)
	orDefault(&o.Writers, emitWriters)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Jitter == nil {
		o.Jitter = rand.N[time.Duration]
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	j := &Journal{
		store: store.NewChecked(s), now: o.Now, log: o.Log.With("journal", o.Name),
		timing: o.Timing.withDefaults(), keep: o.Retention.withDefaults(),
		tail: newTail(), process: crand.Text()[:16], jitter: o.Jitter, chunk: o.Chunk,
	}
	j.keys.of(o.Name)
	j.Lay(o.Run)
	j.view.folds, j.view.turn = o.Folds, make(turn, 1)
	j.past = past{turn: make(turn, 1), last: map[string]folded{}}
	j.emits = newEmits(j, o.Writers)
	j.ctx, j.cancel = context.WithCancel(context.Background())
	return j
}

// Lay says how many slots in a row share a partition, as Options.Run does, before the journal is used; 0: the default.
func (j *Journal) Lay(run int64) {
	orDefault(&run, ShortRun)
	j.keys.lay(j.store.Exclusive(), run)
}

// Close ends what runs in the background; waiting readers return ErrClosed. The error is nil.
func (j *Journal) Close() error {
	j.cancel()
	j.group.Wait()
	return nil
}

// Stamp returns an id for the time of a response: the clock's, and at least atLeast. It is a timestamp as in
// JobScheduler's event API, is not on the journal, and means nothing to followers.
func (j *Journal) Stamp(atLeast event.ID) event.ID { return max(event.IDAt(j.now()), atLeast) }

// token returns a token that no other Write has.
func (j *Journal) token() string {
	return j.process + strconv.FormatUint(j.tokens.Add(1), 36)
}

// sequence reads the sequencer strongly.
func (j *Journal) sequence(ctx context.Context) (store.Sequence, error) {
	seq, err := j.store.Sequence(ctx, j.keys.sequencer(), false)
	if err != nil {
		return seq, j.unavailable("read the sequencer", err)
	}
	return seq, nil
}

// known is what a strong read of the sequencer permits: to write slots above floor until notAfter.
type known struct {
	floor    int64
	floorID  event.ID
	notAfter time.Time
}

// know reads the sequencer, which permits writing slots. Rule (age): the permission counts from the sending of the request.
func (j *Journal) know(ctx context.Context) (known, error) {
	sent := time.Now()
	seq, err := j.sequence(ctx)
	return known{floor: seq.FloorPosition, floorID: event.ID(seq.FloorID), notAfter: sent.Add(j.timing.Age)}, err
}
