package queue

import (
	"context"
	"sync"
)

// slotCache caches the taken slots of limits for [alone]. An error in it costs a failed write, and never a slot too many: each is
// taken under the condition that it is free.
type slotCache struct {
	mu      sync.Mutex
	used    map[string]*slotSet
	changes int // counts changes, so that what was read before a change is not kept

	reserved   map[string]*slotSet // slots of starts that are being written, by limit
	turnedAway map[string]bool     // limits of which a claim found no free slot while some were reserved
}

// maxLimits is how many limits are cached.
const maxLimits = 4096

func (a *alone) slots(ctx context.Context, limit string) (*slotSet, error) {
	known, changes := a.taken.of(limit)
	if known != nil {
		return known, nil
	}
	used, err := a.q.readSlots(ctx, limit)
	if err == nil {
		a.taken.keep(limit, used, changes)
	}
	return used, err
}

func (a *alone) givenBack(permits []permit) { a.taken.change(permits, false) }

func (s *slotCache) of(what string) (used *slotSet, changes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if used = s.used[what]; used != nil {
		used = used.clone()
	}
	return used, s.changes
}

// keep caches the set that was read when the count of changes was changes, unless it has changed since.
func (s *slotCache) keep(what string, used *slotSet, changes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changes != changes {
		return
	}
	if s.used == nil || len(s.used) >= maxLimits {
		s.used = map[string]*slotSet{}
	}
	s.used[what] = used.clone()
}

// change notes slots that a write has taken or given back.
func (s *slotCache) change(all []permit, taken bool) {
	if len(all) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changes++
	for _, p := range all {
		switch used := s.used[p.What]; {
		case used == nil:
		case taken:
			used.takeFor(p.Number, p.holder)
		default:
			used.giveBack(p.Number)
		}
	}
}

// forget drops the cached sets; they are read again.
func (s *slotCache) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changes++
	s.used = nil
}

// reserve reserves the lowest slot that is neither taken nor reserved. seen is the set of taken slots as the caller read it, used if
// the limit is not cached: then the slot may turn out to be taken.
func (s *slotCache) reserve(what string, limit int, seen *slotSet) (number int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if used := s.used[what]; used != nil {
		seen = used
	}
	if s.reserved == nil {
		s.reserved, s.turnedAway = map[string]*slotSet{}, map[string]bool{}
	}
	mine := s.reserved[what]
	if number, ok = seen.with(mine).lowest(limit); !ok {
		if mine != nil {
			s.turnedAway[what] = true
		}
		return 0, false
	}
	if mine == nil {
		mine = &slotSet{}
		s.reserved[what] = mine
	}
	mine.take(number)
	return number, true
}

// unreserve ends reservations, whether the slots were taken or not, and reports whether a claim found no free slot meanwhile.
func (s *slotCache) unreserve(all []permit) (turnedAway bool) {
	if len(all) == 0 {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range all {
		turnedAway = turnedAway || s.turnedAway[p.What]
		mine := s.reserved[p.What]
		if mine.giveBack(p.Number); mine.count() == 0 {
			delete(s.reserved, p.What)
			delete(s.turnedAway, p.What)
		}
	}
	return turnedAway
}
