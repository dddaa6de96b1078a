package exchanges

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/shared/queue"
)

// session is what this process remembers of an instance between its exchanges, and what lets one of them at a time through. All that
// it remembers can be read again.
type session struct {
	users int // exchanges that are here; guarded by the sessions

	mu  sync.Mutex
	now *turn // the exchange that is under way; nil: none

	// These belong to the exchange that is under way.
	last     record          // as this process has written it, or returned it; version 0: it has not
	seen     int64           // the greatest number, also of one that has waited and is not stored
	returned bool            // the last exchange has returned its response
	prompt   bool            // the exchange that followed one with ends last came at once
	held     map[string]bool // the leases that the instance holds; nil: not known
	due      time.Time       // when some of them are to be extended

	busy   atomic.Bool                   // its last claim with results has brought it more than one task
	claims atomic.Pointer[queue.Claimer] // how the instance has claimed last; nil: it is not known
	rest   atomic.Pointer[rest]          // set while no exchange is under way; nil: nothing that the next one could go on with

	unwatch func() // ends the watch of its leases; nil: there is none yet

	changed atomic.Bool   // something became of a lease of it, other than by its own results
	wake    chan struct{} // has room for one: changed was set
	used    time.Time     // guarded by the sessions
}

// notice notes that something became of a lease.
func (s *session) notice() {
	s.changed.Store(true)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// turn is one exchange's stay in its session.
type turn struct {
	seq   int64
	first bool          // it has waited for no other
	next  chan int64    // receives the number of the exchange that comes next; has room for one
	done  chan struct{} // closed at the end
}

// enter waits until no other exchange of the instance is under way; one that waits ends its wait for this one. The error is
// [ErrOld] if a later one is under way, or that of ctx.
func (s *session) enter(ctx context.Context, seq int64) (*turn, error) {
	mine := &turn{seq: seq, first: true, next: make(chan int64, 1), done: make(chan struct{})}
	for {
		s.mu.Lock()
		before := s.now
		if before == nil {
			s.now = mine
			s.mu.Unlock()
			return mine, nil
		}
		s.mu.Unlock()
		mine.first = false
		if before.seq > seq {
			return nil, ErrOld
		}
		select {
		case before.next <- seq:
		default: // it was told before
		}
		select {
		case <-before.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// leave lets the next exchange through.
func (s *session) leave(t *turn) {
	s.mu.Lock()
	s.now = nil
	s.mu.Unlock()
	close(t.done)
}

// sessions holds a session for each instance that this process has served lately.
type sessions struct {
	mu  sync.Mutex
	all map[string]*session // by the instance's id
}

// forgetAfter is how long an instance must not have been served before its session is dropped.
const forgetAfter = 10 * time.Minute

// of returns the session of an instance, which stays until [sessions.done].
func (s *sessions) of(id string) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[string]*session{}
	}
	found := s.all[id]
	if found == nil {
		s.tidy()
		found = &session{wake: make(chan struct{}, 1)}
		s.all[id] = found
	}
	found.users++
	return found
}

// known returns the session of an instance, nil if there is none.
func (s *sessions) known(id string) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[id]
}

func (s *sessions) done(of *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of.users--
	of.used = time.Now()
}

// tidy drops the sessions of instances that have not been served for long. The caller holds mu.
func (s *sessions) tidy() {
	for id, each := range s.all {
		if each.users == 0 && time.Since(each.used) > forgetAfter {
			each.rest.Swap(nil).endNext()
			if delete(s.all, id); each.unwatch != nil {
				each.unwatch()
			}
		}
	}
}
