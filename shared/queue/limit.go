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

// slots holds what a claim has read of the slots of its limits.
type slots struct {
	at   *instanceSlots      // the claimer's slots; nil: it has no capacity limit
	used map[string]*slotSet // taken slots, by permit.What
}

// missing is the limit that has no free slot.
type missing int

const (
	nothing missing = iota
	limitQueue
	limitKey
	limitInstance
)

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
	s := &c.slots
	s.used = nil
	if s.at != nil {
		if err := s.at.read(ctx, c.q); err != nil {
			return err
		}
		s.used = map[string]*slotSet{s.at.what: s.at.used}
	}
	if c.queue.MaxParallel > 0 {
		return s.read(ctx, c.q, queueLimit(c.queue.Name))
	}
	return nil
}

func (s *slots) read(ctx context.Context, q *Queue, limit string) error {
	if s.used[limit] != nil {
		return nil
	}
	used, err := q.strategy.slots(ctx, limit)
	if s.used == nil {
		s.used = map[string]*slotSet{}
	}
	s.used[limit] = used
	return err
}

// takeSlots takes a slot of each limit of a task, or returns which limit has none free.
func (c *claim) takeSlots(key *task.Concurrency) ([]permit, missing) {
	s := &c.slots
	var permits []permit
	if s.at != nil {
		p, ok := s.free(s.at.what, s.at.limit)
		if !ok {
			return nil, limitInstance
		}
		permits = append(permits, p)
	}
	if key != nil {
		p, ok := s.free(keyLimit(key.Key), key.Limit)
		if !ok {
			return nil, limitKey
		}
		permits = append(permits, p)
	}
	if c.queue.MaxParallel > 0 {
		limit := queueLimit(c.queue.Name)
		number, ok := c.view.slot(s.used[limit])
		if !ok {
			return nil, limitQueue
		}
		permits = append(permits, permit{What: limit, Number: number})
	}
	for _, p := range permits {
		s.used[p.What].take(p.Number)
	}
	return permits, nothing
}

func (s *slots) free(limit string, most int) (permit, bool) {
	number, ok := s.used[limit].lowest(most)
	return permit{What: limit, Number: number}, ok
}
