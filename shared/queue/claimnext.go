package queue

import (
	"context"
	"sync"

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
	switch {
	case crowded != nil:
		return q.completeInCrowd(ctx, e, crowded, max)
	case next == nil:
		state, err := e.ended(ctx, q.write(ctx, e)[0])
		return state, nil, err
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

// completeInCrowd completes a task while claims are made together with others of this process.
func (q *Queue) completeInCrowd(ctx context.Context, e *ending, claims []*claim, max int) (state task.State, leases []Lease, err error) {
	var group sync.WaitGroup
	group.Go(func() {
		var err error
		if leases, err = q.claimIn(context.WithoutCancel(ctx), claims, nil, max); err != nil {
			q.log.Warn("the next task was not claimed", "error", err)
		}
	})
	state, err = e.ended(ctx, q.write(ctx, e)[0])
	group.Wait()
	return state, leases, err
}

// nextClaim returns a claim that has chosen tasks, and its part of a write; nil if it finds none at once. Claims that are rather made
// together with others under way are returned as crowded.
func (q *Queue) nextClaim(ctx context.Context, by Claimer, max int) (next *claim, chosen *joined, crowded []*claim) {
	if by.Capacity > 0 {
		return nil, nil, nil // the slot that is given back now is not free yet
	}
	claims, err := q.claims(ctx, by)
	if err != nil {
		return nil, nil, nil // Claim will say so
	}
	for _, c := range claims {
		c.begin(min(max, q.maxClaim))
		if len(c.view.contested()) > 0 {
			continue // likewise
		}
		if q.crowds.emptyLately(c) {
			continue // Claim will look
		}
		if !q.crowds.enter(c) {
			crowded = append(crowded, c)
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
			return c, chosen, nil
		}
	}
	return nil, nil, crowded
}
