package queue

import (
	"context"

	"github.com/millrace/millrace/shared/task"
)

// CompleteAndClaim is [Queue.Complete] and then [Queue.Claim], in one write where possible, for a worker that goes on with
// the next task at once. The error is that of the completion; tasks may be claimed even so. If it returns no lease, tasks
// may still be ready: only Claim says that none is.
func (q *Queue) CompleteAndClaim(ctx context.Context, token string, r Result, by Claimer, max int) (task.State, []Lease, error) {
	e, err := q.ending(ctx, token, r)
	if err != nil {
		return "", nil, err
	}
	next, chosen, crowded := q.nextClaim(ctx, by, max)
	if next == nil {
		state, err := e.ended(ctx, q.write(ctx, e)[0])
		if err != nil || !crowded {
			return state, nil, err
		}
		leases, err := q.Claim(context.WithoutCancel(ctx), by, max)
		if err != nil {
			q.log.Warn("the next task was not claimed", "error", err)
		}
		return state, leases, nil
	}
	errs := q.send(ctx, join(ctx, e), chosen)
	leases, claimErr := next.settle(context.WithoutCancel(ctx), errs[1])
	next.view.handOver(ctx)
	if claimErr != nil {
		q.log.Warn("the next task was not claimed", "error", claimErr)
	}
	state, err := e.ended(ctx, errs[0])
	return state, leases, err
}

// nextClaim returns a claim that has chosen tasks, and its part of a write; nil if it finds none at once. It leaves queues that are
// crowded to Claim.
func (q *Queue) nextClaim(ctx context.Context, by Claimer, max int) (next *claim, chosen *joined, crowded bool) {
	if by.Capacity > 0 {
		return nil, nil, false // the slot that is given back now is not free yet
	}
	claims, err := q.claims(ctx, by)
	if err != nil {
		return nil, nil, false // Claim will say so
	}
	for _, c := range claims {
		c.begin(min(max, MaxClaim))
		if len(c.view.contested()) > 0 {
			continue // likewise
		}
		if !q.crowds.enter(c) {
			crowded = true
			continue
		}
		chosen, err := c.choose(ctx)
		q.crowds.leave(c)
		switch {
		case err != nil || chosen == nil:
		case chosen.over: // nothing of it can be started
			if _, err := c.settle(context.WithoutCancel(ctx), chosen.err); err != nil {
				q.log.Warn("the next task was not claimed", "queue", c.queue.Name, "error", err)
			}
		default:
			return c, chosen, false
		}
	}
	return nil, nil, crowded
}
