package queue

import (
	"context"
	"sync"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// A limit's places are items: a lease takes one by putting it, under the condition that it is absent, in the write that
// starts the task, and gives it back in the write that ends it. So no more run than there are places, and no place is lost
// with a process.

// permit is one place of a limit.
type permit struct {
	What   string `json:"w"` // queue/NAME, key/KEY, or at/INSTANCE
	Number int    `json:"n"`
	holder string // what its item holds: the token of the lease that takes it, and perhaps the mark of a claim
}

func (p permit) key() store.Key {
	return work(permitPartition(p.What), hexadecimal(uint64(p.Number), 8))
}

// permitPool is what a claim knows of the places that are free.
type permitPool struct {
	at       *room                // the claimer's; nil: it names no capacity
	used     map[string]*occupied // by what
	shared   *permits             // where places of the queue are reserved; nil: they are chosen by what was read alone
	reserved []permit
}

// missing says which limit is reached.
type missing int

const (
	nothing missing = iota
	limitQueue
	limitKey
	limitInstance
)

func queueLimit(name string) string { return "queue/" + name }

func keyLimit(key string) string { return "key/" + key }

// read finds out which places of the claimer's and the queue's limits are taken. Those of concurrency keys are read as they are
// asked for.
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

// take takes a place of each limit that concerns a task, or says which one has none.
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

// ofQueue returns a place of the queue, reserved if claims of this process choose them side by side.
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

// turnstile lets one at a time through, by name.
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
