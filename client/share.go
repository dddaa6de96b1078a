package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"time"
)

// This file lets concurrent calls share requests. Who calls while nothing is under way sends at once. What is called while a request
// is under way goes out together in the next one, as soon as that one is over. So one caller is as fast as it would be alone, many
// make few requests, and nobody waits for company.

const (
	sharedCount = 1000    // elements that go together, as many as the server takes in a batch
	sharedBytes = 1 << 19 // bytes that go together; the server takes 1 MiB
	aloneCount  = 100     // a call with more elements goes alone,
	aloneBytes  = 1 << 16 // and so does one with more bytes

	// longWait is how long a call waits for a request of others at most. So a request that is slow, or lost, holds nobody up.
	longWait = 20 * time.Millisecond
)

// share sends what concurrent calls of one kind ask for. A call has elements of a JSON array, and gets a result of type R for each.
type share[R any] struct {
	// send sends a request with an array of n elements, and returns n results. A refusal, other than of who asks, must say that
	// nothing was done.
	send func(ctx context.Context, array []byte, n int) ([]R, error)

	// alone says that every call has a request of its own.
	alone bool

	mu       sync.Mutex
	underway int        // requests
	queue    []*part[R] // wait for the next one
	late     *time.Timer
}

// part is what one call asks for, while it shares a request with others.
type part[R any] struct {
	elements []byte // with commas between
	n        int
	together *together // with whom it is under way; nil before

	over    chan struct{} // closed when there are results, or an error
	results []R
	err     error
}

// together are parts that are under way.
type together struct {
	present int // callers that have not left
	cancel  context.CancelFunc
}

// do sends a call's n elements, alone or with those of others, and returns their results. If ctx ends, the caller leaves: what is
// under way then goes on for the others.
func (s *share[R]) do(ctx context.Context, elements []byte, n int) ([]R, error) {
	if s.alone || n > aloneCount || len(elements) > aloneBytes {
		return s.send(ctx, array(elements), n)
	}
	s.mu.Lock()
	if s.underway == 0 {
		s.underway++
		s.mu.Unlock()
		defer s.next()
		return s.send(ctx, array(elements), n)
	}
	p := &part[R]{elements: elements, n: n, over: make(chan struct{})}
	s.wait(p)
	s.mu.Unlock()
	select {
	case <-p.over:
		return p.results, p.err
	case <-ctx.Done():
		s.leave(p)
		return nil, context.Cause(ctx)
	}
}

// wait adds a part to the queue.
func (s *share[R]) wait(p *part[R]) {
	if s.queue = append(s.queue, p); len(s.queue) > 1 {
		return
	}
	if s.late == nil {
		s.late = time.AfterFunc(longWait, s.overtake)
	} else {
		s.late.Reset(longWait)
	}
}

// leave takes back what a caller has asked for, unless it is sent already. A request that nobody waits for any more ends.
func (s *share[R]) leave(p *part[R]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.together == nil {
		s.queue = slices.DeleteFunc(s.queue, func(waits *part[R]) bool { return waits == p })
		return
	}
	if p.together.present--; p.together.present == 0 {
		p.together.cancel()
	}
}

// next sends what has been asked for while a request was under way that is over now.
func (s *share[R]) next() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.underway--
	s.begin()
}

// overtake sends what has waited for too long.
func (s *share[R]) overtake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin()
}

// begin sends what waits.
func (s *share[R]) begin() {
	if ctx, batch := s.take(); len(batch) > 0 {
		s.underway++
		go s.run(ctx, batch)
	}
}

// run sends a batch, and those that have come to wait meanwhile.
func (s *share[R]) run(ctx context.Context, batch []*part[R]) {
	for len(batch) > 0 {
		s.deliver(ctx, batch)
		runtime.Gosched() // those who have got results may ask for more
		s.mu.Lock()
		batch[0].together.cancel()
		if ctx, batch = s.take(); len(batch) == 0 {
			s.underway--
		}
		s.mu.Unlock()
	}
}

// take removes from the queue what goes together, and returns it with the context of its request.
func (s *share[R]) take() (context.Context, []*part[R]) {
	count, size, n := 0, 0, 0
	for ; n < len(s.queue) && count+s.queue[n].n <= sharedCount && size+len(s.queue[n].elements) <= sharedBytes; n++ {
		count, size = count+s.queue[n].n, size+len(s.queue[n].elements)
	}
	if n == 0 {
		return nil, nil
	}
	batch := s.queue[:n:n]
	if s.queue = s.queue[n:]; len(s.queue) == 0 {
		s.queue = nil
		s.late.Stop()
	} else {
		s.late.Reset(longWait)
	}
	ctx, cancel := context.WithCancel(context.Background())
	with := &together{present: n, cancel: cancel}
	for _, p := range batch {
		p.together = with
	}
	return ctx, batch
}

// deliver sends parts together, and gives each its results. If they are refused together, nothing was done, and each half is sent
// by itself, so that in the end only what is refused alone is refused.
func (s *share[R]) deliver(ctx context.Context, batch []*part[R]) {
	results, err := s.sendAll(ctx, batch)
	if len(batch) > 1 && refusedTogether(err) {
		s.deliver(ctx, batch[:len(batch)/2])
		s.deliver(ctx, batch[len(batch)/2:])
		return
	}
	for _, p := range batch {
		if p.err = err; err == nil {
			p.results, results = results[:p.n:p.n], results[p.n:]
		}
		close(p.over)
	}
}

func (s *share[R]) sendAll(ctx context.Context, batch []*part[R]) ([]R, error) {
	size, n := 2, 0
	for _, p := range batch {
		size, n = size+len(p.elements)+1, n+p.n
	}
	text := append(make([]byte, 0, size), '[')
	for i, p := range batch {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, p.elements...)
	}
	results, err := s.send(ctx, append(text, ']'), n)
	if err == nil && len(results) != n {
		err = fmt.Errorf("answer: %d results for %d elements", len(results), n)
	}
	return results, err
}

// refusedTogether reports whether a request was refused, by what it asks for rather than by who asks.
func refusedTogether(err error) bool {
	var e *Error
	if !errors.As(err, &e) || Temporary(err) {
		return false
	}
	return e.Status/100 == 4 && e.Status != http.StatusUnauthorized && e.Status != http.StatusForbidden
}

// array returns elements as an array.
func array(elements []byte) []byte {
	return slices.Concat([]byte{'['}, elements, []byte{']'})
}

// elements returns the elements of an array, with commas between.
func elements(array []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimPrefix(array, []byte{'['}), []byte{']'})
}
