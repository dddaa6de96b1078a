package queue

import (
	"context"

	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// The slots of a limit are items: a lease takes a slot by putting its item, under the condition that it is absent, in the write that
// starts the task, and gives it back in the write that ends the lease. So no more tasks run than there are slots, and no slot is lost
// with a process.

// permit is one slot of a limit, taken by a lease.
type permit struct {
	What   string `json:"w"` // queue/NAME, key/KEY, or at/INSTANCE
	Number int    `json:"n"`
	holder string // the item's content: the token of the lease, and the mark of the claim if it has an idempotency key
}

func (p permit) key() store.Key {
	return work(permitPartition(p.What), hexadecimal(uint64(p.Number), 8))
}

func queueLimit(name string) string { return "queue/" + name }

func keyLimit(key string) string { return "key/" + key }

// readSlots reads which slots of a limit are taken.
func (q *Queue) readSlots(ctx context.Context, limit string) (*slotSet, error) {
	used := &slotSet{}
	for item, err := range store.All(ctx, q.store, store.Range{Table: store.Work, Partition: permitPartition(limit)}) {
		if err != nil {
			return nil, unavailable("read a limit", err)
		}
		number, err := slotNumber(item.Key)
		if err != nil {
			return nil, unavailable("read a limit", err)
		}
		used.takeFor(number, string(item.Value))
	}
	return used, nil
}

// readSlots reads which slots of the claimer's and the queue's limits are taken. Those of concurrency keys are read when they are
// needed.
func (c *claim) readSlots(ctx context.Context) error {
	c.used = nil
	if c.at != nil {
		if err := c.at.read(ctx, c.q); err != nil {
			return err
		}
		c.used = map[string]*slotSet{c.at.what: c.at.used}
	}
	if c.queue.MaxParallel > 0 {
		return c.readLimit(ctx, queueLimit(c.queue.Name))
	}
	return nil
}

func (c *claim) readLimit(ctx context.Context, limit string) error {
	if c.used[limit] != nil {
		return nil
	}
	used, err := c.q.strategy.slots(ctx, limit)
	if c.used == nil {
		c.used = map[string]*slotSet{}
	}
	c.used[limit] = used
	return err
}

// takeSlots takes a slot of each limit of a task, or returns the limit that has none free.
func (c *claim) takeSlots(key *task.Concurrency) (permits []permit, missing string) {
	if c.at != nil {
		number, ok := c.used[c.at.what].lowest(c.at.limit)
		if !ok {
			return nil, c.at.what
		}
		permits = append(permits, permit{What: c.at.what, Number: number})
	}
	if key != nil {
		limit := keyLimit(key.Key)
		number, ok := c.used[limit].lowest(key.Limit)
		if !ok {
			return nil, limit
		}
		permits = append(permits, permit{What: limit, Number: number})
	}
	if c.queue.MaxParallel > 0 {
		limit := queueLimit(c.queue.Name)
		number, ok := c.view.slot(c.used[limit])
		if !ok {
			return nil, limit
		}
		permits = append(permits, permit{What: limit, Number: number})
	}
	for _, p := range permits {
		c.used[p.What].take(p.Number)
	}
	return permits, ""
}
