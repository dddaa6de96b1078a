package client

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/millrace/millrace/shared/event"
)

// followWait is how long a follower asks the server to wait for an event by default.
const followWait = time.Minute

// Step is what one read of a follower returns.
type Step struct {
	// Events are the next ones that matched, in rising order of their ids; perhaps none.
	Events []event.Event

	// Snapshot is not nil where events were evicted before the follower read them: it replaces all that the follower knew,
	// and the next events are those after its EventID.
	Snapshot *Snapshot

	// Last is the EventId up to which the follower has read: a later one with it as Query.After misses and repeats nothing.
	Last event.ID
}

// Follow yields every event that the query selects, each once and in order, until ctx ends or the caller breaks the loop. It
// outlives failures of the network, restarts of the server and, by a new snapshot, the eviction of events; only the first
// response must come before the client's patience ends. The one error it yields, as its last, is a refusal that
// is not [Temporary], the end of patience before the first response, or the end of ctx.
func (c *Client) Follow(ctx context.Context, q Query) iter.Seq2[Step, error] {
	return func(yield func(Step, error) bool) {
		if q.Wait == 0 {
			q.Wait = followWait
		}
		for patience := c.patience; ; patience = endless {
			step, err := c.step(ctx, q, patience)
			if err != nil {
				yield(Step{}, fmt.Errorf("client: follow after %d: %w", q.After, err))
				return
			}
			if !yield(step, nil) {
				return
			}
			q.After = step.Last
		}
	}
}

// step reads once, and takes a snapshot where the journal is torn.
func (c *Client) step(ctx context.Context, q Query, patience time.Duration) (Step, error) {
	answer, err := c.read(ctx, q, patience)
	if err != nil {
		return Step{}, err
	}
	if !answer.Torn {
		return Step{Events: answer.Events, Last: answer.Last}, nil
	}
	snapshot, err := c.snapshot(ctx, q.Path, nil, endless)
	if err != nil {
		return Step{}, err
	}
	return Step{Snapshot: &snapshot, Last: snapshot.EventID}, nil
}
