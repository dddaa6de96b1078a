package queue

import (
	"context"
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

	// bounds return at most how many operations the part has and about how many bytes.
	bounds() (ops, bytes int)

	// touches names the items that no two parts of one write may have in common.
	touches() []string

	// private says that what prepare reads is hardly changed by others while the part waits, so that its caller may
	// prepare it at once and beside others, instead of the one who writes for all.
	private() bool
}

// joined is a part that waits for its write.
type joined struct {
	part
	change     journal.Change // if it is prepared
	prepared   bool
	over       bool // it failed before it waited
	ops, bytes int
	touched    []string
	err        error
	done       chan struct{}
}

// join prepares a part if it is private, and measures it.
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

// maxWriters is how many combined writes are under way at once. A store that is this process's alone makes durable at once
// whatever comes meanwhile: there one writer and larger writes do best, as long as all that waits fits in one.
const maxWriters = 2

// leads reports whether one who has just joined is to write.
func (c *combiner) leads() bool {
	return c.writers == 0 || c.writers < maxWriters && (c.shared || c.ops > combineOps)
}

const (
	combineOps   = store.MaxOps - 10 // the journal adds its own
	combineBytes = 1 << 20
)

// write writes parts, in one write if they fit. The error is that of the first part that has one; each part has its own.
func (q *Queue) write(ctx context.Context, parts ...part) []error {
	mine := make([]*joined, len(parts))
	for i, p := range parts {
		mine[i] = join(ctx, p)
	}
	return q.send(ctx, mine...)
}

// send is write, of parts that are joined.
func (q *Queue) send(ctx context.Context, mine ...*joined) []error {
	ctx = context.WithoutCancel(ctx) // a write that has begun ends, whoever still listens
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

// enter adds parts to those that wait, except such as have failed already, and reports whether the caller is to write.
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

// take returns the parts of the next write; nil, and the leader is dismissed, where none waits.
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
			j.prepared = false // what it rests on is about to change
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

// writeTogether writes a batch and tells each of its parts how it went.
func (q *Queue) writeTogether(ctx context.Context, batch []*joined) {
	q.writeSound(ctx, batch)
	for _, j := range batch {
		close(j.done)
	}
}

// writeSound writes a batch. What the store does not take together is written in halves, so that a part that no store would take
// is refused alone, and none beside it.
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

// writeOnce writes a batch, and returns those of its parts that the outcome is of: the others have an error of their own.
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
