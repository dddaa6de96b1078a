package queue

import (
	"context"
	"sync"

	"github.com/millrace/millrace/shared/definition"
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

// permitPool holds what a claim has read of the slots of its limits.
type permitPool struct {
	at       *room                // the claimer's slots; nil: it has no capacity limit
	used     map[string]*occupied // taken slots, by permit.What
	shared   *permits             // where slots of the queue are reserved; nil: they are not reserved
	reserved []permit
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

// read reads which slots of the claimer's and the queue's limits are taken. Those of concurrency keys are read when they are
// needed.
func (pool *permitPool) read(ctx context.Context, q *Queue, c *definition.Queue) error {
	pool.used = nil
	if pool.at != nil {
		if err := pool.at.read(ctx, q); err != nil {
			return err
		}
		pool.used = map[string]*occupied{pool.at.what: pool.at.used}
	}
	if c.MaxParallel > 0 {
		return pool.readOne(ctx, q, queueLimit(c.Name))
	}
	return nil
}

func (pool *permitPool) readOne(ctx context.Context, q *Queue, what string) error {
	if pool.used[what] != nil {
		return nil
	}
	used, err := q.usedPermits(ctx, what)
	if pool.used == nil {
		pool.used = map[string]*occupied{}
	}
	pool.used[what] = used
	return err
}

// take takes a slot of each limit of a task, or returns which limit has none free.
func (pool *permitPool) take(c *definition.Queue, key *task.Concurrency) ([]permit, missing) {
	var permits []permit
	if pool.at != nil {
		p, ok := pool.free(pool.at.what, pool.at.limit)
		if !ok {
			return nil, limitInstance
		}
		permits = append(permits, p)
	}
	if key != nil {
		p, ok := pool.free(keyLimit(key.Key), key.Limit)
		if !ok {
			return nil, limitKey
		}
		permits = append(permits, p)
	}
	if c.MaxParallel > 0 {
		p, ok := pool.ofQueue(c)
		if !ok {
			return nil, limitQueue
		}
		permits = append(permits, p)
	}
	for _, p := range permits {
		pool.used[p.What].take(p.Number)
	}
	return permits, nothing
}

// ofQueue returns a free slot of the queue, and reserves it if pool.shared is set.
func (pool *permitPool) ofQueue(c *definition.Queue) (permit, bool) {
	what := queueLimit(c.Name)
	if pool.shared == nil {
		return pool.free(what, c.MaxParallel)
	}
	number, ok := pool.shared.reserve(what, c.MaxParallel, pool.used[what])
	if ok {
		pool.reserved = append(pool.reserved, permit{What: what, Number: number})
	}
	return permit{What: what, Number: number}, ok
}

func (pool *permitPool) free(what string, limit int) (permit, bool) {
	number, ok := pool.used[what].lowest(limit)
	return permit{What: what, Number: number}, ok
}

// turnstile is a mutex by name.
type turnstile struct {
	mu    sync.Mutex
	locks map[string]latch
}

func (t *turnstile) lock(name string) (unlock func()) {
	t.mu.Lock()
	if t.locks == nil {
		t.locks = map[string]latch{}
	}
	l := t.locks[name]
	if l == nil {
		l = newLatch()
		t.locks[name] = l
	}
	t.mu.Unlock()
	l.Lock()
	return l.Unlock
}
