package queue

import (
	"context"
	"hash/fnv"
	"reflect"
	"slices"
	"sync"
)

// Claims of one instance choose the same places if they are made at once, and all but one of them would have to begin anew.
// So they go one after the other, as far as they come to this process, and those that wait meanwhile go together, as one.

// asking is a claim that an instance has asked for.
type asking struct {
	ctx    context.Context
	by     Claimer
	max    int
	leases []Lease
	err    error
	done   bool // under the latch of its instance
}

// crowds are the claims that wait for others of their instance.
type crowds struct {
	mu      sync.Mutex
	latches [256]latch // of instances, which share them, since they come and go
	waiting map[string][]*asking
}

// enter lets a claim wait and returns its turn.
func (s *crowds) enter(a *asking) latch {
	h := fnv.New32a()
	_, _ = h.Write([]byte(a.by.Instance)) // never fails
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting == nil {
		s.waiting = map[string][]*asking{}
	}
	s.waiting[a.by.Instance] = append(s.waiting[a.by.Instance], a)
	turn := &s.latches[h.Sum32()%uint32(len(s.latches))]
	if *turn == nil {
		*turn = newLatch()
	}
	return *turn
}

// take returns claims that go together with the first one that waits: as many as one write holds, of the same claimer. Nothing
// is claimed for one who has left; none may be left. One with a key goes by itself: the next with that key is to have the same.
func (s *crowds) take(instance string) (together []*asking, max int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.waiting[instance]
	rest := all[:0]
	for _, a := range all {
		if a.err = a.ctx.Err(); a.err != nil {
			a.done = true
			continue
		}
		if len(together) > 0 && (a.by.Once != nil || max+a.max > MaxClaim || !reflect.DeepEqual(a.by, together[0].by)) {
			rest = append(rest, a)
			continue
		}
		together, max = append(together, a), max+a.max
	}
	clear(all[len(rest):])
	if s.waiting[instance] = rest; len(rest) == 0 {
		delete(s.waiting, instance)
	}
	return together, max
}

// claimInTurn is [Queue.Claim] of one with a capacity.
func (q *Queue) claimInTurn(ctx context.Context, by Claimer, max int) ([]Lease, error) {
	mine := &asking{ctx: ctx, by: by, max: max}
	turn := q.crowds.enter(mine)
	turn.Lock()
	defer turn.Unlock()
	for !mine.done {
		q.claimTogether(q.crowds.take(by.Instance))
	}
	return mine.leases, mine.err
}

// claimTogether claims for several, and deals out to them in the order in which they came.
func (q *Queue) claimTogether(all []*asking, max int) {
	if len(all) == 0 {
		return
	}
	ctx := all[0].ctx
	if len(all) > 1 {
		ctx = context.WithoutCancel(ctx) // it is the others' claim too
	}
	leases, err := q.claimOnce(ctx, all[0].by, max)
	for i, a := range all {
		n := min(a.max, len(leases))
		if i == len(all)-1 {
			n = len(leases) // what is given again may be more than is asked for now
		}
		a.leases, leases = slices.Clip(leases[:n]), leases[n:]
		a.err, a.done = err, true
	}
}
