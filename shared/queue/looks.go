package queue

import (
	"slices"

	"github.com/millrace/millrace/shared/queue/layout"
)

// An instance that was woken for a task may have no slot left when its claim's turn comes, since another of its claims has taken the
// last one. Nobody would start the task then. So the lines for which an instance was woken are noted until a claim of it has dealt with
// them, and what its claim leaves for want of a slot wakes another.

// looksFor notes that an instance was woken for a task in a line, and is about to claim. The caller holds mu.
func (s *waiters) looksFor(by *Claimer, l layout.Line) {
	if by.Capacity <= 0 || l == (layout.Line{}) {
		return // it has a slot for each task, or was woken for none
	}
	if s.looks == nil {
		s.looks = map[string][]layout.Line{}
	}
	s.looks[by.Instance] = append(s.looks[by.Instance], l)
}

// looksNoMore takes back that an instance is about to claim. The caller holds mu.
func (s *waiters) looksNoMore(by *Claimer, l layout.Line) {
	lines := s.looks[by.Instance]
	if n := slices.Index(lines, l); n >= 0 {
		s.looks[by.Instance] = slices.Delete(lines, n, n+1)
	}
	if len(s.looks[by.Instance]) == 0 {
		delete(s.looks, by.Instance)
	}
}

// looking returns the lines for which an instance was woken since its last claim: one claim now deals with all of them.
func (s *waiters) looking(instance string) []layout.Line {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := s.looks[instance]
	delete(s.looks, instance)
	return lines
}

// passOn wakes another instance for each of the lines.
func (s *waiters) passOn(lines []layout.Line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range lines {
		s.wake(l)
	}
}

// looked ends a claim of up to max tasks by an instance that was woken for lines. What it has no slot for is left to others; what it did
// not want is left to its next claim.
func (q *Queue) looked(at *instanceSlots, by *Claimer, lines []layout.Line, started []Lease, max int) {
	for i := range started {
		t := &started[i].Task
		of := func(l layout.Line) bool { return l.Queue == t.Queue && l.Job == t.Job }
		if n := slices.IndexFunc(lines, of); n >= 0 && !started[i].Replayed {
			lines = slices.Delete(lines, n, n+1)
		}
	}
	switch {
	case len(lines) == 0:
	case at.isFull():
		q.waiters.passOn(lines)
	case len(started) >= max:
		q.waiters.mu.Lock()
		defer q.waiters.mu.Unlock()
		for _, l := range lines {
			q.waiters.looksFor(by, l)
		}
	}
}
