package stream

import (
	"context"
	"sync"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
)

// Append asks for events at the end of a stream, all or none.
type Append struct {
	Stream   string // 1 to [MaxName] characters
	Producer UUID   // who must own the stream, or begins it
	Events   []Event
	Once     *journal.Idempotency // nil: every call counts
}

// Appended says where one event went.
type Appended struct {
	ID       UUID
	Name     string
	Sequence int64
	EventID  event.ID
}

// Receipt says where the events of an append went, in their order.
type Receipt struct {
	Events   []Appended
	Replayed bool // an earlier append with the same idempotency key answered
}

// Append appends events. Calls for one stream that come at once share a write: the next one takes all that have come while
// one was under way. An append that has begun is not undone by the end of ctx.
//
// The error is ErrLocked for a foreign producer, journal.ErrIdempotencyMismatch for a key used with another content,
// ErrTooManyNames or journal.ErrTooLarge for what no single write can hold; journal.ErrUnknownOutcome if it could not be
// established whether the events are there.
func (s *Streams) Append(ctx context.Context, a Append) (Receipt, error) {
	if err := ctx.Err(); err != nil {
		return Receipt{}, err
	}
	adding := &addition{Append: a, done: make(chan struct{})}
	s.lane(a.Stream, adding)
	select {
	case <-adding.done:
		return adding.receipt, adding.err
	case <-ctx.Done():
		return Receipt{}, ctx.Err()
	}
}

// addition is one append and its answer.
type addition struct {
	Append
	done    chan struct{} // closed when receipt and err are there
	receipt Receipt
	err     error
	expired int64 // the version of an idempotency item that may be replaced; 0: there must be none
}

func (a *addition) finish(r Receipt, err error) {
	a.receipt, a.err = r, err
	close(a.done)
}

// size is about how many bytes of the write are this append's, the slot's part included.
func (a *addition) size() int {
	size := 0
	for i := range a.Events {
		size += runOverhead + len(a.Events[i].Body) + len(a.Stream) + len(a.Events[i].Name) + slotOverhead
	}
	return size
}

// slotOverhead is about how many bytes a StreamAppended takes besides names.
const slotOverhead = 200

// lane is a stream's appends of this process: one write after the other, so that they do not fail by each other. What it
// knows of the stream is a guess that each write's conditions test.
type lane struct {
	streams *Streams
	stream  string

	mu      sync.Mutex
	waiting []*addition
	running bool

	// Of the lane's one goroutine:
	fresh bool // what follows was true when it was read or written
	exist bool // there is the stream
	head  head
	at    int64 // version of the head
	names map[string]state
}

// state is what is known of an event name; version 0 says that it is new.
type state struct{ last, version int64 }

// lane puts an addition into its stream's lane, and sets that going.
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

// forget drops the lanes in which nothing happens. Whoever adds holds s.mu, so that none is dropped that is about to go.
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

// What appends that share a write come to at most.
const (
	sharedEvents = 1000
	sharedBytes  = 256 << 10
	sharedNames  = 16
)

// take answers what the next write is made of: all that wait, as far as one write holds them; nil ends the run.
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

// share is what a batch has come to.
type share struct {
	events, bytes int
	names         map[string]struct{}
	keys          map[store.Key]struct{} // of idempotency, of which a write has each once
}

// add counts an append in, and reports whether there is room for it beside others.
func (s *share) add(a *addition) bool {
	s.events, s.bytes = s.events+len(a.Events), s.bytes+a.size()
	for i := range a.Events {
		s.names[a.Events[i].Name] = struct{}{}
	}
	if a.Once != nil {
		key := onceKey(a.Once)
		if _, taken := s.keys[key]; taken {
			return false
		}
		s.keys[key] = struct{}{}
	}
	return s.events <= sharedEvents && s.bytes <= sharedBytes && len(s.names) <= sharedNames && len(s.keys) <= sharedNames
}

// write appends a batch and answers everybody in it. What the store does not take together is written in halves, one after the
// other.
func (l *lane) write(batch []*addition) {
	w := &writing{lane: l, batch: batch}
	receipt, err := l.streams.journal.Write(context.Background(), w.prepare)
	n := len(w.batch)
	switch {
	case n == 0: // each has been answered otherwise
	case err == nil:
		w.landed(receipt)
	case n > 1 && journal.Refused(err): // one of them is at fault perhaps, and not the others
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
