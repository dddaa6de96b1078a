package queue

import (
	"context"
	"reflect"
	"slices"

	"github.com/millrace/millrace/shared/groupcommit"
)

// Concurrent claims of one instance would choose the same slots, and all but one would have to repeat their work. So this process
// makes them one after the other, and makes those that wait meanwhile together, as one claim.

// asking is one call of Claim by an instance.
type asking struct {
	by     Claimer
	max    int
	ends   *endings // attempts that end in the same turn; nil: none
	leases []Lease
	err    error
	endErr error // of the ends
}

// newAskings returns what gathers the claims of each instance.
func (q *Queue) newAskings() *groupcommit.Keyed[string, *asking] {
	return groupcommit.NewKeyed[string](groupcommit.Options[*asking]{
		Batch:  func() func(*asking) bool { return (&jointClaim{most: q.maxClaim}).add },
		Write:  q.claimTogether,
		Prompt: q.store.Exclusive(),
	})
}

// jointClaim is the claims that are made as one: of the same claimer, as many as one write holds. A claim with an idempotency key is
// made alone, since the next one with that key must get the same tasks.
type jointClaim struct {
	most  int // tasks
	first *asking
	max   int
}

// add adds a claim if it fits.
func (c *jointClaim) add(a *asking) bool {
	switch {
	case c.first == nil:
		c.first = a
	case a.by.Beside != nil || c.first.by.Beside != nil:
		return false
	case a.by.Once != nil || c.max+a.max > c.most || !reflect.DeepEqual(a.by, c.first.by):
		return false
	}
	c.max += a.max
	return true
}

// claimInTurn is [Queue.Claim] of a claimer with a capacity. A claim whose context ends while it waits for others leaves; one that
// has begun is waited for, since its leases would be lost.
func (q *Queue) claimInTurn(ctx context.Context, by Claimer, max int) ([]Lease, error) {
	mine := &asking{by: by, max: max}
	if err := q.askings.Do(ctx, by.Instance, mine); err != nil {
		q.waiters.passOn(q.waiters.looking(by.Instance)) // it was perhaps woken for a task
		return nil, err
	}
	return mine.leases, mine.err
}

// claimTogether makes several claims as one, and gives out the leases in the order of the claims.
func (q *Queue) claimTogether(ctx context.Context, all []*asking) {
	if all[0].ends != nil {
		q.turnOver(ctx, all[0]) // it has a Beside, and is made alone
		return
	}
	max := 0
	for _, a := range all {
		max += a.max
	}
	leases, err := q.claimOnce(ctx, all[0].by, max)
	if all[0].by.Beside == nil && len(leases) > 0 {
		q.watchers.tell(all[0].by.Instance) // an exchange has not claimed them, and keeps them all the same
	}
	for i, a := range all {
		n := min(a.max, len(leases))
		if i == len(all)-1 {
			n = len(leases) // leases of a repeated claim may be more than are wanted now
		}
		a.leases, leases = slices.Clip(leases[:n]), leases[n:]
		a.err = err
	}
}
