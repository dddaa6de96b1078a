package queue

import (
	"context"
	"hash/fnv"
	"reflect"
	"slices"
	"sync"
)

// Concurrent claims of one instance would choose the same slots, and all but one would have to repeat their work. So this process
// makes them one after the other, and makes those that wait meanwhile together, as one claim (a crowd).

// asking is one call of Claim by an instance.
type asking struct {
	ctx    context.Context
	by     Claimer
	max    int
	leases []Lease
	err    error
	done   bool // guarded by the mutex of its instance
}

// crowds holds the claims that wait for others of their instance.
type crowds struct {
	mu      sync.Mutex
	latches [256]chanMutex // by the hash of the instance; instances come and go, so that some share one
	waiting map[string][]*asking
}

// enter adds a waiting claim, and returns the mutex of its instance.
func (s *crowds) enter(a *asking) chanMutex {
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
		*turn = newChanMutex()
	}
	return *turn
}

// take removes and returns the waiting claims that are made together, and the number of tasks that they want: the first claim, and
// others of the same claimer, as many as one write holds. It drops claims whose context has ended, so that there may be none. A
// claim with an idempotency key is made alone, since the next one with that key must get the same tasks.
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

// claimInTurn is [Queue.Claim] of a claimer with a capacity.
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

// claimTogether makes several claims as one, and gives out the leases in the order of the claims.
func (q *Queue) claimTogether(all []*asking, max int) {
	if len(all) == 0 {
		return
	}
	ctx := all[0].ctx
	if len(all) > 1 {
		ctx = context.WithoutCancel(ctx) // the others wait for it too
	}
	leases, err := q.claimOnce(ctx, all[0].by, max)
	for i, a := range all {
		n := min(a.max, len(leases))
		if i == len(all)-1 {
			n = len(leases) // leases of a repeated claim may be more than are wanted now
		}
		a.leases, leases = slices.Clip(leases[:n]), leases[n:]
		a.err, a.done = err, true
	}
}
