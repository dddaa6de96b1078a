package queue

import (
	"context"
	"runtime"
	"sync"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
)

// part is one change of those that share a write. Changes that are requested while others are being written wait and share the
// next write, in one slot of the journal: each costs a fraction of a write, and none waits when no write is under way.
type part interface {
	// prepare is a [journal.Prepare] of this part alone; lost may hold other parts' items too. Its error, [errNothing] too,
	// ends this part only.
	prepare(ctx context.Context, lost *store.Conflict) (journal.Change, error)

	// bounds returns the most operations that the part has, and about how many bytes.
	bounds() (ops, bytes int)

	// touches returns names of items; no two parts of one write may have one in common.
	touches() []string

	// private reports whether others hardly change what prepare reads while the part waits. Then its caller prepares it at
	// once, concurrently with others, instead of the goroutine that writes for all.
	private() bool
}

// joined is a part that waits for its write.
type joined struct {
	part
	change     journal.Change // if it is prepared
	prepared   bool
	over       bool // its preparation failed, and it does not wait
	ops, bytes int
	touched    []string
	err        error
	done       chan struct{}
}

// join prepares a part if it is private, and reads its bounds.
func join(ctx context.Context, p part) *joined {
	ctx = context.WithoutCancel(ctx)
	j := &joined{part: p, done: make(chan struct{})}
	if p.private() {
		if j.change, j.err = p.prepare(ctx, nil); j.err != nil {
			j.over = true
			return j
		}
		j.prepared = true
	}
	j.ops, j.bytes = p.bounds()
	j.touched = p.touches()
	return j
}

// combiner gathers parts into writes.
type combiner struct {
	mu      sync.Mutex
	waiting []*joined
	ops     int // of those that wait
	writers int
	shared  bool // the store is: other processes use it, and each write is a request of its own
}

// maxWriters is how many combined writes are under way at once. A store that this process has to itself is fastest with one
// writer and larger writes, as long as everything that waits fits in one.
const maxWriters = 2

// leads reports whether a caller that has just added parts is to write.
func (c *combiner) leads() bool {
	return c.writers == 0 || c.writers < maxWriters && (c.shared || c.ops > combineOps)
}

const (
	combineOps   = store.MaxOps - 10 // the journal adds its own
	combineBytes = 1 << 20
)

// write writes parts, in one write if they fit, and returns an error for each part.
func (q *Queue) write(ctx context.Context, parts ...part) []error {
	mine := make([]*joined, len(parts))
	for i, p := range parts {
		mine[i] = join(ctx, p)
	}
	return q.send(ctx, mine...)
}

// send is write of parts that are joined.
func (q *Queue) send(ctx context.Context, mine ...*joined) []error {
	ctx = context.WithoutCancel(ctx) // a write that has begun goes on if the caller gives up
	if q.combiner.enter(mine) {
		q.lead(ctx)
	}
	errs := make([]error, len(mine))
	for i, j := range mine {
		if !j.over {
			<-j.done
		}
		errs[i] = j.err
	}
	return errs
}

// enter adds parts that have not failed to those that wait, and reports whether the caller is to write.
func (c *combiner) enter(parts []*joined) (lead bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, j := range parts {
		if !j.over {
			c.waiting = append(c.waiting, j)
			c.ops += j.ops
		}
	}
	if lead = len(c.waiting) > 0 && c.leads(); lead {
		c.writers++
	}
	return lead
}

// lead writes the parts that wait until none does: one write in the caller's goroutine, and the parts that came meanwhile in
// another goroutine, so that no caller writes for others without end.
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

// gather yields to other goroutines for as long as that adds parts.
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

// take returns the parts of the next write. If none waits it returns nil, and the caller is no longer a writer.
func (c *combiner) take() []*joined {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) == 0 {
		c.writers--
		return nil
	}
	batch, rest := make([]*joined, 0, len(c.waiting)), c.waiting[:0]
	touched := map[string]bool{}
	ops, bytes := 0, 0
	for _, j := range c.waiting {
		other := overlaps(touched, j.touched)
		if other {
			j.prepared = false // another part changes what it has read
		}
		if other || len(batch) > 0 && (ops+j.ops > combineOps || bytes+j.bytes > combineBytes) {
			rest = append(rest, j)
			continue
		}
		batch = append(batch, j)
		ops, bytes = ops+j.ops, bytes+j.bytes
		for _, name := range j.touched {
			touched[name] = true
		}
	}
	clear(c.waiting[len(rest):])
	c.waiting = rest
	c.ops -= ops
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

// writeTogether writes a batch, and wakes the callers of its parts.
func (q *Queue) writeTogether(ctx context.Context, batch []*joined) {
	q.writeSound(ctx, batch)
	for _, j := range batch {
		close(j.done)
	}
}

// writeSound writes a batch. A batch that the store refuses is written in halves, so that a part that the store would never take is
// refused alone.
func (q *Queue) writeSound(ctx context.Context, batch []*joined) {
	live, err := q.writeOnce(ctx, batch)
	if n := len(live); n > 1 && journal.Refused(err) {
		q.writeSound(ctx, live[:n/2])
		q.writeSound(ctx, live[n/2:])
		return
	}
	if journal.Refused(err) {
		err = unavailable("write tasks", err)
	}
	for _, j := range live {
		j.err = err
	}
}

// writeOnce writes a batch, and returns the parts that err is of: the others have an error of their own.
func (q *Queue) writeOnce(ctx context.Context, batch []*joined) (live []*joined, err error) {
	live = batch
	_, err = q.journal.Write(ctx, func(ctx context.Context, lost *store.Conflict) (journal.Change, error) {
		var events []event.Event
		var ops []func(journal.Receipt) []store.Op
		var still []*joined
		for _, j := range live {
			change, err := j.change, error(nil)
			if !j.prepared {
				change, err = j.prepare(ctx, lost)
			}
			j.prepared = false // for once
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
	return live, err
}
