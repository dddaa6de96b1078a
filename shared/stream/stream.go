package stream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/groupcommit"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
)

// The errors of a Streams, besides those of package journal.
var (
	// ErrLocked is returned by Append where the stream is another producer's; nothing was stored.
	ErrLocked = errors.New("stream: the stream is another producer's")

	// ErrNoStream is returned where there is no stream of that name.
	ErrNoStream = errors.New("stream: no such stream")

	// ErrNoEvent is returned where the stream has no event with that id.
	ErrNoEvent = errors.New("stream: no such event")

	// ErrBeyond is returned by Move for an offset beyond the last sequence.
	ErrBeyond = errors.New("stream: the offset lies beyond the last sequence")

	// ErrTooManyNames is returned by Append for more than [MaxNames] event names.
	ErrTooManyNames = errors.New("stream: too many event names for one batch")
)

// OutOfOrderError is returned by Acknowledge for an event that is not the next one.
type OutOfOrderError struct {
	Name       string // of the event
	Next, This int64  // the sequence to acknowledge next, and that of the event
}

// Error returns a text that names both sequences.
func (e *OutOfOrderError) Error() string {
	return fmt.Sprintf("stream: sequence %d is not the next to acknowledge, %d is", e.This, e.Next)
}

// Limits of streams.
const (
	MaxName  = 255                    // characters of a stream's or an event's name, as in the event server
	MaxBatch = 1000                   // events in one append
	MaxBody  = store.MaxValue - 4<<10 // bytes of an event's body, which is in one item
	MaxNames = 40                     // event names in one append: each takes two operations of a write, which has [store.MaxOps] on some stores
)

// Journal holds the methods of a [journal.Journal] that streams use.
type Journal interface {
	Write(ctx context.Context, prepare journal.Prepare) (journal.Receipt, error)
	ReadAfter(ctx context.Context, r journal.Request) (journal.Answer, error)
	ReadNewest(ctx context.Context, r journal.Request) (journal.Answer, error)
}

// Options of a Streams. Store and Journal are required.
type Options struct {
	Store   store.Store
	Journal Journal
	Now     func() time.Time // the clock for the expiry of idempotency keys and the time of offsets; default time.Now
}

// Streams gives access to all streams in a store. Its methods may be called concurrently.
type Streams struct {
	store   *store.Checked
	journal Journal
	now     func() time.Time

	appends *groupcommit.Keyed[string, *addition] // of each stream

	mu    sync.Mutex
	lanes map[string]*lane  // of streams that are appended to
	known map[string]number // of streams that are read; a stream's number never changes
}

// maxRemembered bounds the numbers, the names and the lanes in memory. Beyond it they are dropped and read again.
const maxRemembered = 4096

// Open returns the streams in a store. Nothing is read or written yet, and there is nothing to close.
func Open(o Options) *Streams {
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Streams{
		store: store.NewChecked(o.Store), journal: o.Journal, now: o.Now, lanes: map[string]*lane{}, known: map[string]number{},
	}
	s.appends = s.newAppends()
	return s
}

// find returns the number of the stream of that name.
func (s *Streams) find(ctx context.Context, name string) (number, error) {
	s.mu.Lock()
	n, known := s.known[name]
	s.mu.Unlock()
	if known {
		return n, nil
	}
	h, err := s.head(ctx, name)
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) >= maxRemembered {
		clear(s.known)
	}
	s.known[name] = h.Number
	return h.Number, nil
}

// head reads a stream's head.
func (s *Streams) head(ctx context.Context, name string) (head, error) {
	var h head
	items, err := s.store.Get(ctx, headKey(name))
	switch {
	case err != nil:
		return h, unavailable("read a stream", err)
	case items[0] == nil:
		return h, ErrNoStream
	}
	return h, decode(items[0], &h)
}

// unavailable returns the journal's error for one of the store's, so that callers need not know those; nil for nil.
func unavailable(doing string, err error) error {
	if errors.Is(err, store.ErrUnknown) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %s: %w", journal.ErrUnknownOutcome, doing, err)
	}
	return journal.Failure(doing, err)
}
