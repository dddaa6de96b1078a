package stream

import (
	"context"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/groupcommit"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
)

// Append is a request to append events to the end of a stream, all or none.
type Append struct {
	Stream   string               // 1 to [MaxName] characters
	Producer UUID                 // who must own the stream, or begins it
	Events   []Event              // 1 to [MaxBatch], in this order; the caller checks that
	Once     *journal.Idempotency // makes the append happen once within [journal.OnceFor]; nil: every call counts
}

// Appended says where one event went.
type Appended struct {
	ID       UUID
	Name     string
	Sequence int64    // of its name, dense from 1
	EventID  event.ID // of StreamAppended on the journal
}

// Receipt says where the events of an append went, in their order.
type Receipt struct {
	Events   []Appended
	Replayed bool // this is the receipt of an earlier append with the same idempotency key
}

// Append appends events. Concurrent calls for one stream share writes (package groupcommit). If ctx ends while the call waits for its
// write, nothing is stored; an append that has begun is waited for.
//
// The error is ErrLocked for a foreign producer, journal.ErrIdempotencyMismatch for a key used with another content,
// ErrTooManyNames for more than [MaxNames], journal.ErrTooLarge for what no single write can hold; journal.ErrUnknownOutcome if it is
// not known whether the events are there.
func (s *Streams) Append(ctx context.Context, a Append) (Receipt, error) {
	if countNames(a.Events) > MaxNames {
		return Receipt{}, ErrTooManyNames
	}
	adding := &addition{Append: a, actor: journal.Actor(ctx)}
	if a.Once != nil {
		adding.note = journal.NoteAt(onceKey(a.Once))
	}
	if err := s.appends.Do(ctx, a.Stream, adding); err != nil {
		return Receipt{}, err
	}
	return adding.receipt, adding.err
}

// countNames returns how many event names there are.
func countNames(events []Event) int {
	names := make(map[string]struct{}, min(len(events), MaxNames))
	for i := range events {
		names[events[i].Name] = struct{}{}
	}
	return len(names)
}

// addition is one append and its result.
type addition struct {
	Append
	receipt Receipt
	err     error
	note    *journal.Note // of Once; nil without
	actor   string        // on whose behalf it is
}

// size returns roughly how many bytes of the write are this append's, the slot's part included.
func (a *addition) size() int {
	size := 0
	for i := range a.Events {
		size += runOverhead + len(a.Events[i].Body) + len(a.Stream) + len(a.Events[i].Name) + slotOverhead
	}
	return size
}

// slotOverhead is roughly how many bytes a StreamAppended takes besides names.
const slotOverhead = 200

// newAppends returns what gathers the appends to each stream, one write after the other, so that they do not conflict with each
// other.
func (s *Streams) newAppends() *groupcommit.Keyed[string, *addition] {
	return groupcommit.NewKeyed[string](groupcommit.Options[*addition]{
		Batch: func() func(*addition) bool {
			return (&share{names: map[string]struct{}{}, keys: map[store.Key]struct{}{}}).add
		},
		Write: func(ctx context.Context, batch []*addition) {
			w := &writing{lane: s.lane(batch[0].Stream)}
			journal.WriteTogether(ctx, s.journal, batch, w.prepare, w.ended)
		},
	})
}

// The bounds of appends that share a write.
const (
	sharedEvents = 1000
	sharedBytes  = 256 << 10
	sharedNames  = 16
)

// share is the appends of one write: those that wait, in their order, of one producer, as far as one write holds them.
type share struct {
	first         *addition
	events, bytes int
	names         map[string]struct{}
	keys          map[store.Key]struct{} // of idempotency, of which a write has each once
	full          bool
}

// add adds an append unless it or one before it does not fit.
func (s *share) add(a *addition) bool {
	s.full = s.full || !s.fits(a)
	return !s.full
}

// fits counts an append, and reports whether all that were counted fit into one write.
func (s *share) fits(a *addition) bool {
	if s.first == nil {
		s.first = a
	}
	s.events, s.bytes = s.events+len(a.Events), s.bytes+a.size()
	for i := range a.Events {
		s.names[a.Events[i].Name] = struct{}{}
	}
	if a.note != nil {
		key := a.note.Key()
		if _, taken := s.keys[key]; taken {
			return false
		}
		s.keys[key] = struct{}{}
	}
	return a.Producer == s.first.Producer &&
		s.events <= sharedEvents && s.bytes <= sharedBytes && len(s.names) <= sharedNames && len(s.keys) <= sharedNames
}
