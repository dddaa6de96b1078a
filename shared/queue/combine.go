package queue

import (
	"context"
	"errors"
	"runtime"
	"sync"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
)

// part is one change among those that a write carries. Changes that are asked for while others are being written wait and
// go together, in one slot of the journal: that costs a fraction of a write for each, and nobody waits for company.
type part interface {
	// prepare is as a [journal.Prepare] of this part alone; lost may speak of other parts' items too. [errNothing] and
	// every other error are the part's own, and leave the others alone.
	prepare(ctx context.Context, lost *store.Conflict) (journal.Change, error)

	// bounds answer at most how many operations the part has and about how many bytes.
	bounds() (ops, bytes int)

	// touches names the items that no two parts of one write may have in common.
	touches() []string
}

// joined is a part that waits for its write.
type joined struct {
	part
	err  error
	done chan struct{}
}

// combiner gathers parts into writes.
type combiner struct {
	mu      sync.Mutex
	waiting []*joined
	writers int
}

// maxWriters is how many combined writes are under way at once: while one is being made durable, the next is prepared.
const maxWriters = 2

const (
	combineOps   = store.MaxOps - 10 // the journal adds its own
	combineBytes = 1 << 20
)

// write writes parts, in one write if they fit. The error is that of the first part that has one; each part has its own.
func (q *Queue) write(ctx context.Context, parts ...part) []error {
	mine := make([]*joined, len(parts))
	for i, p := range parts {
		mine[i] = &joined{part: p, done: make(chan struct{})}
	}
	c := &q.combiner
	c.mu.Lock()
	c.waiting = append(c.waiting, mine...)
	lead := c.writers < maxWriters
	if lead {
		c.writers++
	}
	c.mu.Unlock()
	if lead {
		q.lead(context.WithoutCancel(ctx))
	}
	errs := make([]error, len(mine))
	for i, j := range mine {
		<-j.done // a write that has begun ends, whoever still listens
		errs[i] = j.err
	}
	return errs
}

// lead writes what waits until nothing does: one write by the caller, and what has come meanwhile in the background, so
// that nobody works for others for as long as they come.
func (q *Queue) lead(ctx context.Context) {
	batch := q.next()
	if batch == nil {
		return
	}
	q.writeTogether(ctx, batch)
	if batch = q.next(); batch == nil {
		return
	}
	go func() {
		for ; batch != nil; batch = q.next() {
			q.writeTogether(ctx, batch)
		}
	}()
}

func (q *Queue) next() []*joined {
	q.combiner.gather()
	return q.combiner.take()
}

// gather lets whoever can run join, for as long as that brings parts.
func (c *combiner) gather() {
	for before := -1; ; {
		c.mu.Lock()
		now := len(c.waiting)
		c.mu.Unlock()
		if now <= before {
			return
		}
		before = now
		runtime.Gosched()
	}
}

// take answers the parts of the next write; nil, and the leader is dismissed, where none waits.
func (c *combiner) take() []*joined {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) == 0 {
		c.writers--
		return nil
	}
	var batch, rest []*joined
	touched := map[string]bool{}
	ops, bytes := 0, 0
	for _, j := range c.waiting {
		n, size := j.bounds()
		if len(batch) > 0 && (ops+n > combineOps || bytes+size > combineBytes) || overlaps(touched, j.touches()) {
			rest = append(rest, j)
			continue
		}
		batch = append(batch, j)
		ops, bytes = ops+n, bytes+size
		for _, name := range j.touches() {
			touched[name] = true
		}
	}
	c.waiting = rest
	return batch
}

func overlaps(touched map[string]bool, names []string) bool {
	for _, name := range names {
		if touched[name] {
			return true
		}
	}
	return false
}

// writeTogether writes a batch and tells each of its parts how it went.
func (q *Queue) writeTogether(ctx context.Context, batch []*joined) {
	live := batch
	_, err := q.journal.Write(ctx, func(ctx context.Context, lost *store.Conflict) (journal.Change, error) {
		var events []event.Event
		var ops []func(journal.Receipt) []store.Op
		var still []*joined
		for _, j := range live {
			change, err := j.prepare(ctx, lost)
			if err != nil {
				j.err = err
				continue
			}
			still = append(still, j)
			events, ops = append(events, change.Events...), append(ops, change.Ops)
		}
		if live = still; len(live) == 0 {
			return journal.Change{}, errNothing
		}
		return journal.Change{Events: events, Ops: func(r journal.Receipt) []store.Op {
			all := ops[0](r)
			for _, more := range ops[1:] {
				all = append(all, more(r)...)
			}
			return all
		}}, nil
	})
	if err != nil && !errors.Is(err, errNothing) {
		for _, j := range live {
			j.err = err
		}
	}
	for _, j := range batch {
		close(j.done)
	}
}
