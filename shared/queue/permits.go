package queue

import (
	"context"
	"sync"

	"github.com/millrace/millrace/shared/store"
)

// permits are the places that are taken, by what they are of, where no other process takes or gives any back. It saves each
// claim a search that steps over all the places that were ever given back. What is wrong here costs a write that is refused,
// never a place too many: each is taken under the condition that it is free.
type permits struct {
	mu      sync.Mutex
	used    map[string]*occupied
	changes int // so that what was read before a change is not kept

	reserved   map[string]*occupied // by starts that are being written
	turnedAway map[string]bool      // of what somebody found none free while some were reserved
}

// maxPermits is how many limits are remembered.
const maxPermits = 4096

// usedPermits returns the places that are taken, for the caller to keep.
func (q *Queue) usedPermits(ctx context.Context, what string) (*occupied, error) {
	if !q.store.Exclusive() {
		return q.readPermits(ctx, what)
	}
	known, changes := q.permits.of(what)
	if known != nil {
		return known, nil
	}
	used, err := q.readPermits(ctx, what)
	if err == nil {
		q.permits.keep(what, used, changes)
	}
	return used, err
}

func (q *Queue) readPermits(ctx context.Context, what string) (*occupied, error) {
	used := &occupied{}
	for item, err := range store.All(ctx, q.store, store.Range{Table: store.Work, Partition: permitPartition(what)}) {
		if err != nil {
			return nil, unavailable("read a limit", err)
		}
		number, err := placeNumber(item.Key)
		if err != nil {
			return nil, unavailable("read a limit", err)
		}
		used.takeFor(number, string(item.Value))
	}
	return used, nil
}

func (s *permits) of(what string) (used *occupied, changes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if used = s.used[what]; used != nil {
		used = used.clone()
	}
	return used, s.changes
}

// keep keeps what was read when there had been so many changes.
func (s *permits) keep(what string, used *occupied, changes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changes != changes {
		return
	}
	if s.used == nil || len(s.used) >= maxPermits {
		s.used = map[string]*occupied{}
	}
	s.used[what] = used.clone()
}

// change notes places that a write has taken or given back.
func (s *permits) change(all []permit, taken bool) {
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

// forget forgets all; it is read again.
func (s *permits) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changes++
	s.used = nil
}

// reserve reserves the lowest place that is neither taken nor reserved. seen are those that are taken, as the caller read them,
// for the case that they are not remembered: then it may turn out that the place is taken.
func (s *permits) reserve(what string, limit int, seen *occupied) (number int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if used := s.used[what]; used != nil {
		seen = used
	}
	if s.reserved == nil {
		s.reserved, s.turnedAway = map[string]*occupied{}, map[string]bool{}
	}
	mine := s.reserved[what]
	if number, ok = seen.with(mine).lowest(limit); !ok {
		if mine != nil {
			s.turnedAway[what] = true
		}
		return 0, false
	}
	if mine == nil {
		mine = &occupied{}
		s.reserved[what] = mine
	}
	mine.take(number)
	return number, true
}

// unreserve gives back what was reserved, whether it is taken now or not, and reports whether anybody was turned away meanwhile.
func (s *permits) unreserve(all []permit) (turnedAway bool) {
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
