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

// expectedFor is how long an addition waits for an expected wait to begin.
const expectedFor = 20 * time.Millisecond

// Expect returns a wait that is about to begin, unless it turns out that there is a task already. It is the Next of a claim, and followed by
// [Waiting.Begin] or [Waiting.End].
func (q *Queue) Expect(by Claimer) *Waiting {
	w := &Waiting{q: q, by: by, ready: make(chan struct{}), begins: make(chan struct{}), until: time.Now().Add(time.Hour)}
	s := &q.waiters
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.expected = append(s.expected, w)
	}
	return w
}

// Begin begins an expected wait if an addition waits for that, as if it had been made with [Waiting.Accept]: Ready is closed once the tasks are
// started, or are not after all. Otherwise Begin returns false, and the wait is still expected.
func (w *Waiting) Begin(by Claimer, max int) bool {
	s := &w.q.waiters
	s.mu.Lock()
	defer s.mu.Unlock()
	if !w.handing || w.begins == nil {
		return false
	}
	w.accepts, w.reserved = &acceptance{by, max}, Mark{s.calls.newest}
	s.expectNoMore(w)
	return true
}

// Within says that an expected wait begins within some time, or not at all.
func (w *Waiting) Within(d time.Duration) {
	s := &w.q.waiters
	s.mu.Lock()
	defer s.mu.Unlock()
	w.until = time.Now().Add(d)
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

// expectNoMore has whoever waits for a wait to begin look at whether it has. The caller holds mu.
func (s *waiters) expectNoMore(w *Waiting) {
	if w.begins != nil {
		close(w.begins)
		w.begins = nil
	}
	if i := slices.Index(s.expected, w); i >= 0 {
		s.expected = slices.Delete(s.expected, i, i+1)
	}
}

// expects returns the first expected wait that takes from a line and has a free slot; nil if there is none. The caller holds mu.
func (s *waiters) expects(l layout.Line) *Waiting {
	if len(s.expected) == 0 {
		return nil
	}
	now := time.Now()
	s.expected = slices.DeleteFunc(s.expected, func(w *Waiting) bool { return now.After(w.until) })
	for _, w := range s.expected {
		if w.by.takes(l) && !s.full[w.by.Instance] {
			return w
		}
	}
	return nil
}

// reserveExpected is reserve of an expected wait, once it has begun. One addition at a time waits for it.
func (s *waiters) reserveExpected(ctx context.Context, l layout.Line) *Waiting {
	w, begins := s.await(l)
	if w == nil {
		return nil
	}
	late := time.NewTimer(min(expectedFor, time.Until(w.until)))
	defer late.Stop()
	select {
	case <-begins:
	case <-late.C:
	case <-ctx.Done():
	}
	if s.hasBegun(w) {
		return w
	}
	s.free(w, l)
	return nil
}

// await takes out an expected wait, so that a task is started for it when begins is closed.
func (s *waiters) await(l layout.Line) (w *Waiting, begins <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w = s.expects(l); w == nil {
		return nil, nil
	}
	begins, w.handing = w.begins, true
	s.expected = slices.DeleteFunc(s.expected, func(of *Waiting) bool { return of == w })
	return w, begins
}

// hasBegun reports whether an expected wait has begun. If it has not, it will not.
func (s *waiters) hasBegun(w *Waiting) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expectNoMore(w)
	return w.accepts != nil
}
