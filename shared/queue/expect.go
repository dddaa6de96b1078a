package queue

import (
	"context"
	"slices"
	"time"

	"github.com/millrace/millrace/shared/queue/layout"
)

// An instance that tells the end of a task waits for the next one right afterwards, if none is ready. A task that was added in between became ready,
// was found by reads and started by a write of its own; all that took so long that the task after it met the same. So the wait of such an instance is
// expected, and what adds a task first waits for that to begin, and then starts the task in the write that adds it.

const (
	// expectedFor is how long an addition waits at most for an expected wait to begin.
	expectedFor = 20 * time.Millisecond

	// mostExpected is how many expected waits an addition looks at, since those that run other jobs may be many.
	mostExpected = 16
)

// Expect returns a wait that is about to begin, unless it turns out that there is a task already. It is the Next of a claim, and followed by
// [Waiting.End], whether it begins or not.
func (q *Queue) Expect(by Claimer) *Waiting {
	w := &Waiting{q: q, by: by, ready: make(chan struct{}), begins: make(chan struct{}), isExpected: true}
	s := &q.waiters
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pruneExpected(); !s.ended {
		s.expected = append(s.expected, w)
	}
	return w
}

// Begin begins an expected wait if an addition waits for that, as if it had been made with [Waiting.Accept]: Ready is closed once the tasks are
// started, or are not after all. Otherwise Begin returns false and changes nothing.
func (w *Waiting) Begin(by Claimer, max int) bool {
	s := &w.q.waiters
	s.mu.Lock()
	defer s.mu.Unlock()
	if !w.handing || w.begins == nil {
		return false
	}
	w.by, w.accepts, w.reserved = by, &acceptance{by, max}, Mark{s.calls.newest}
	s.expectNoMore(w)
	return true
}

// Within says that an expected wait begins within some time or not at all, and so that no addition waits for it already.
func (w *Waiting) Within(d time.Duration) {
	s := &w.q.waiters
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.until = time.Now().Add(d); w.handing {
		s.expectNoMore(w)
	}
}

// forgo says of a wait, which may be nil, that it will not begin.
func (w *Waiting) forgo() {
	if w == nil {
		return
	}
	s := &w.q.waiters
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expectNoMore(w)
}

// expectNoMore has the addition that waits for a wait to begin look at whether it has. The caller holds mu.
func (s *waiters) expectNoMore(w *Waiting) {
	if w.begins != nil {
		close(w.begins)
		w.begins = nil
	}
	s.unlist(w)
}

// unlist keeps other additions from a wait. The caller holds mu.
func (s *waiters) unlist(w *Waiting) {
	s.expected = slices.DeleteFunc(s.expected, func(of *Waiting) bool { return of == w })
}

// pruneExpected drops the waits that have not begun in time. The caller holds mu.
func (s *waiters) pruneExpected() {
	now := time.Now()
	s.expected = slices.DeleteFunc(s.expected, func(w *Waiting) bool { return !w.until.IsZero() && now.After(w.until) })
}

// expects returns an expected wait that takes from a line and has a free slot; nil if there is none. The caller holds mu.
func (s *waiters) expects(l layout.Line) *Waiting {
	if len(s.expected) == 0 {
		return nil
	}
	s.pruneExpected()
	for _, w := range s.expected[:min(len(s.expected), mostExpected)] {
		if w.by.takes(l) && !s.full[w.by.Instance] {
			return w
		}
	}
	return nil
}

// awaited is an expected wait that is reserved for the addition which waits for it to begin.
type awaited struct {
	*Waiting
	begins <-chan struct{}
	most   time.Duration
}

// await reserves an expected wait. The caller holds mu.
func (s *waiters) await(l layout.Line) *awaited {
	w := s.expects(l)
	if w == nil {
		return nil
	}
	a := &awaited{w, w.begins, expectedFor}
	if !w.until.IsZero() {
		a.most = min(a.most, time.Until(w.until))
	}
	w.handing = true
	s.unlist(w)
	return a
}

// begun waits until the wait has begun, and returns it; nil if it will not begin, or not in time.
func (a *awaited) begun(ctx context.Context) *Waiting {
	late := time.NewTimer(a.most)
	defer late.Stop()
	select {
	case <-a.begins:
	case <-late.C:
	case <-ctx.Done():
	}
	s := &a.q.waiters
	s.mu.Lock()
	s.expectNoMore(a.Waiting)
	begun := a.accepts != nil
	s.mu.Unlock()
	if begun {
		return a.Waiting
	}
	s.free(a.Waiting, layout.Line{})
	return nil
}
