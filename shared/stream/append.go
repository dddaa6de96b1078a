package stream

import (
	"context"
	"sync"

	"github.com/millrace/millrace/shared/event"
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

// Append appends events. Concurrent calls for one stream share writes: while one write is under way, the calls for the next
// gather. The end of ctx does not undo an append that has begun.
//
// The error is ErrLocked for a foreign producer, journal.ErrIdempotencyMismatch for a key used with another content,
// ErrTooManyNames or journal.ErrTooLarge for what no single write can hold; journal.ErrUnknownOutcome if it is not known
// whether the events are there.
func (s *Streams) Append(ctx context.Context, a Append) (Receipt, error) {
	if err := ctx.Err(); err != nil {
		return Receipt{}, err
	}
	adding := &addition{Append: a, done: make(chan struct{})}
	if a.Once != nil {
		adding.note = journal.NoteAt(onceKey(a.Once))
	}
	s.lane(a.Stream, adding)
	select {
	case <-adding.done:
		return adding.receipt, adding.err
	case <-ctx.Done():
		return Receipt{}, ctx.Err()
	}
}

// addition is one append and its result.
type addition struct {
	Append
	done    chan struct{} // closed when receipt and err are set
	receipt Receipt
	err     error
	note    *journal.Note // of Once; nil without
}

func (a *addition) finish(r Receipt, err error) {
	a.receipt, a.err = r, err
	close(a.done)
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

// lane writes this process's appends to a stream, one write after the other, so that they do not conflict with each other.
// What it remembers of the stream may be outdated; each write's conditions check it.
type lane struct {
	streams *Streams
	stream  string

	mu      sync.Mutex
	waiting []*addition
	running bool

	// Of the lane's one goroutine:
	fresh bool // the fields below were true when they were read or written
	exist bool // the stream exists
	head  head
	at    int64 // version of the head
	names map[string]state
}

// state is the last sequence of an event name and its item's version; version 0 means that the name is new.
type state struct{ last, version int64 }

// lane puts an addition into its stream's lane, and starts the lane if it does not run.
func (s *Streams) lane(stream string, a *addition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lanes[stream]
	if l == nil {
		if len(s.lanes) >= maxRemembered {
			s.forget()
		}
		l = &lane{streams: s, stream: stream}
		s.lanes[stream] = l
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, a)
	if !l.running {
		l.running = true
		go l.run()
	}
}

// forget drops the lanes that do not run. The caller holds s.mu, without which nothing is added to a lane.
func (s *Streams) forget() {
	for name, l := range s.lanes {
		l.mu.Lock()
		if !l.running {
			delete(s.lanes, name)
		}
		l.mu.Unlock()
	}
}

// run writes until nothing waits.
func (l *lane) run() {
	for batch := l.take(); batch != nil; batch = l.take() {
		l.write(batch)
	}
}

// The bounds of appends that share a write.
const (
	sharedEvents = 1000
	sharedBytes  = 256 << 10
	sharedNames  = 16
)

// take returns the appends of the next write: all that wait, of one producer, as far as one write holds them; nil ends the run.
func (l *lane) take() []*addition {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, s := 0, share{names: map[string]struct{}{}, keys: map[store.Key]struct{}{}}
	for n < len(l.waiting) && (s.add(l.waiting[n]) || n == 0) && l.waiting[n].Producer == l.waiting[0].Producer {
		n++
	}
	if n == 0 {
		l.running, l.waiting = false, nil
		return nil
	}
	batch := l.waiting[:n:n]
	l.waiting = l.waiting[n:]
	return batch
}

// share is the size of a batch so far.
type share struct {
	events, bytes int
	names         map[string]struct{}
	keys          map[store.Key]struct{} // of idempotency, of which a write has each once
}

// add counts an append, and reports whether the batch still fits into a shared write.
func (s *share) add(a *addition) bool {
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
	return s.events <= sharedEvents && s.bytes <= sharedBytes && len(s.names) <= sharedNames && len(s.keys) <= sharedNames
}

// write appends a batch and finishes each of its additions. A batch that the store refuses is written in halves, one after the
// other.
func (l *lane) write(batch []*addition) {
	w := &writing{lane: l, batch: batch}
	receipt, err := l.streams.journal.Write(context.Background(), w.prepare)
	n := len(w.batch)
	switch {
	case n == 0: // all are finished already
	case err == nil:
		w.landed(receipt)
	case n > 1 && journal.Refused(err): // perhaps because of one of them
		l.fresh = false
		l.write(w.batch[: n/2 : n/2])
		l.write(w.batch[n/2:])
	default:
		l.fresh = false
		for _, a := range w.batch {
			a.finish(Receipt{}, err)
		}
	}
}
