package groupcommit

import (
	"context"
	"iter"
	"runtime"
	"sync"
	"sync/atomic"
)

// Options of a [Group] or a [Keyed] of parts of type P, usually pointers in which the results are. Batch and Write are required.
type Options[P any] struct {
	// Batch begins the choice of the parts of one write. It returns a function that is called with each part that waits, in their
	// order, and reports whether the part goes with those chosen before it; the first part goes whatever is returned for it. A
	// part that is left keeps its place and waits for the next write. The function runs under a lock and must not block.
	Batch func() (add func(part P) bool)

	// Write makes the changes of the chosen parts, at least one, and stores their results before it returns. If they are of
	// several callers, ctx does not end with that of any of them.
	Write func(ctx context.Context, parts []P)

	// Second reports whether a second write is to begin beside the one under way, for the parts that wait. There are never more
	// than two. It runs under a lock and must not block. Default: there is one write at a time.
	Second func(waiting iter.Seq[P]) bool
}

// Group gathers the parts of concurrent callers into writes. Its methods may be called concurrently.
type Group[P any] struct {
	o *Options[P]

	mu      sync.Mutex
	waiting []seat[P]
	writers int
}

// maxWriters is how many writes of a group are under way at once.
const maxWriters = 2

// New returns a Group. There is nothing to close: it has no goroutine while no caller waits.
func New[P any](o Options[P]) *Group[P] { return &Group[P]{o: &o} }

// seat is a part that waits or is being written, and the call that it is of.
type seat[P any] struct {
	part P
	call *call
}

// call is one call of Do.
type call struct {
	ctx   context.Context
	taken bool          // a part is being written or has been; guarded by the group
	left  atomic.Int32  // parts that are not written yet
	done  chan struct{} // closed when none is left
}

// Do has parts written, and returns when each is: in one write if they fit, and otherwise none before one that precedes it.
//
// If ctx ends before the first of them is taken into a write, nothing of them is written, and the error is that of ctx. A write that
// has begun is waited for, whatever becomes of ctx. There are no other errors: what became of a part, its own result says.
func (g *Group[P]) Do(ctx context.Context, parts ...P) error {
	if len(parts) == 0 {
		return nil
	}
	c := &call{ctx: ctx, done: make(chan struct{})}
	c.left.Store(int32(len(parts)))
	if g.enter(c, parts) {
		g.lead()
	}
	select {
	case <-c.done:
	case <-ctx.Done():
		if g.withdraw(c) {
			return ctx.Err()
		}
		<-c.done
	}
	return nil
}

// enter adds parts to those that wait, and reports whether the caller is to write.
func (g *Group[P]) enter(c *call, parts []P) (leads bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range parts {
		g.waiting = append(g.waiting, seat[P]{p, c})
	}
	leads = g.writers == 0 || g.writers < maxWriters && g.o.Second != nil && g.o.Second(g.parts)
	if leads {
		g.writers++
	}
	return leads
}

// parts yields the parts that wait.
func (g *Group[P]) parts(yield func(P) bool) {
	for _, s := range g.waiting {
		if !yield(s.part) {
			return
		}
	}
}

// withdraw takes back the parts of a call, and reports whether that was in time: none of them was taken, and none will be.
func (g *Group[P]) withdraw(c *call) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c.taken {
		return false
	}
	rest := g.waiting[:0]
	for _, s := range g.waiting {
		if s.call != c {
			rest = append(rest, s)
		}
	}
	g.keep(rest)
	return true
}

// lead writes the parts that wait until none does: one write in the caller's goroutine, and what came meanwhile in another, so
// that no caller writes for others without end.
func (g *Group[P]) lead() {
	batch := g.next()
	if batch == nil {
		return
	}
	g.write(batch)
	if batch = g.next(); batch == nil {
		return
	}
	go func() {
		for ; batch != nil; batch = g.next() {
			g.write(batch)
		}
	}()
}

// write writes a batch, and wakes the callers that have no part left.
func (g *Group[P]) write(batch []seat[P]) {
	ctx, parts := batch[0].call.ctx, make([]P, len(batch))
	for i, s := range batch {
		parts[i] = s.part
		if s.call != batch[0].call && ctx.Done() != nil {
			ctx = context.WithoutCancel(ctx)
		}
	}
	g.o.Write(ctx, parts)
	for _, s := range batch {
		if s.call.left.Add(-1) == 0 {
			close(s.call.done)
		}
	}
}

// next returns the parts of the next write. If none waits it returns nil, and the caller is no longer a writer.
func (g *Group[P]) next() []seat[P] {
	g.gather()
	return g.take()
}

// gather yields to other goroutines for as long as that adds parts: callers that come at the same time would otherwise have the
// first of them written alone. It takes no time where there are none.
func (g *Group[P]) gather() {
	for before := -1; ; {
		g.mu.Lock()
		now := len(g.waiting)
		g.mu.Unlock()
		if now <= before {
			return
		}
		before = now
		runtime.Gosched()
	}
}

func (g *Group[P]) take() []seat[P] {
	g.mu.Lock()
	defer g.mu.Unlock()
	batch, rest := make([]seat[P], 0, len(g.waiting)), g.waiting[:0]
	add := g.o.Batch()
	var behind *call // a part of it is left
	for _, s := range g.waiting {
		if !s.call.taken && s.call.ctx.Err() != nil {
			continue // its caller is about to withdraw it
		}
		if s.call == behind || !add(s.part) && len(batch) > 0 {
			rest, behind = append(rest, s), s.call
			continue
		}
		s.call.taken = true
		batch = append(batch, s)
	}
	g.keep(rest)
	if len(batch) == 0 {
		g.writers--
		return nil
	}
	return batch
}

// keep replaces the parts that wait by some of them, which are at the beginning of the same array.
func (g *Group[P]) keep(rest []seat[P]) {
	clear(g.waiting[len(rest):])
	g.waiting = rest
}
