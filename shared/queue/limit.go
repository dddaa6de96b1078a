package queue

import (
	"context"

	"github.com/millrace/millrace/shared/limit"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/task"
)

// slotsTaken returns how many slots of a limit are taken.
func (q *Queue) slotsTaken(ctx context.Context, name string) (int, error) {
	taken, err := q.limits.Read(ctx, name)
	if err != nil {
		return 0, layout.Failure("read a limit", err)
	}
	return taken.Count(), nil
}

// readSlots reads which slots of the claimer's and the queue's limits are taken. Those of concurrency keys are read when they are
// needed.
func (c *claim) readSlots(ctx context.Context) error {
	c.slots.Reset()
	if c.at != nil {
		if err := c.at.read(ctx, c.q); err != nil {
			return err
		}
		c.slots.Know(c.at.Limit, c.at.taken)
	}
	if c.queue.MaxParallel > 0 {
		return layout.Failure("read a limit", c.slots.Read(ctx, layout.QueueLimit(c.queue.Name)))
	}
	return nil
}

// takeSlots takes a slot of each limit of a task, or returns the limit that has none free.
func (c *claim) takeSlots(ctx context.Context, key *task.Concurrency) (slots []limit.Slot, missing string, err error) {
	wanted := make([]limit.Wanted, 0, 3)
	if c.at != nil {
		wanted = append(wanted, c.at.Wanted)
	}
	if key != nil {
		if err := c.slots.Read(ctx, layout.KeyLimit(key.Key)); err != nil {
			return nil, "", layout.Failure("read a limit", err)
		}
		wanted = append(wanted, limit.Wanted{Limit: layout.KeyLimit(key.Key), Most: key.Limit})
	}
	if c.queue.MaxParallel > 0 {
		wanted = append(wanted, limit.Wanted{Limit: layout.QueueLimit(c.queue.Name), Most: c.queue.MaxParallel, Reserve: c.reserves()})
	}
	slots, missing = c.slots.Take(wanted...)
	return slots, missing, nil
}

// release ends the reservations of starts that are not written, and notifies claimers that found no free slot meanwhile.
func (c *claim) release(ctx context.Context) {
	if c.slots.Release() {
		c.q.notify(ctx, c.q.noticesFor(ctx, c.lines[0]))
	}
}
