package queue

import (
	"context"
	"maps"
	"sync"

	"github.com/millrace/millrace/shared/store"
)

// permits are the places that are taken, by what they are of, where no other process takes or gives any back. It saves each
// claim a search that steps over all the places that were ever given back. What is wrong here costs a write that is refused,
// never a place too many: each is taken under the condition that it is free.
type permits struct {
	mu      sync.Mutex
	used    map[string]map[string]bool // sort keys
	changes int                        // so that what was read before a change is not kept
}

// maxPermits is how many limits are remembered.
const maxPermits = 4096

// usedPermits answers the sort keys of the places that are taken, for the caller to keep.
func (q *Queue) usedPermits(ctx context.Context, what string) (map[string]bool, error) {
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

func (q *Queue) readPermits(ctx context.Context, what string) (map[string]bool, error) {
	used := map[string]bool{}
	for item, err := range store.All(ctx, q.store, store.Range{Table: store.Work, Partition: permitPartition(what)}) {
		if err != nil {
			return nil, unavailable("read a limit", err)
		}
		used[item.Key.Sort] = true
	}
	return used, nil
}

func (s *permits) of(what string) (used map[string]bool, changes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.used[what]), s.changes
}

// keep keeps what was read when there had been so many changes.
func (s *permits) keep(what string, used map[string]bool, changes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changes != changes {
		return
	}
	if s.used == nil || len(s.used) >= maxPermits {
		s.used = map[string]map[string]bool{}
	}
	s.used[what] = maps.Clone(used)
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
			used[p.key().Sort] = true
		default:
			delete(used, p.key().Sort)
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
