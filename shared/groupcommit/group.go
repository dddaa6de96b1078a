package groupcommit

import (
	"cmp"
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/shared/beside"
)

// Options of a [Group] or a [Keyed] of parts of type P, usually pointers in which the results are. Batch and Write are required.
type Options[P any] struct {
	// Batch begins the choice of the parts of one write. It returns a function that is called with each part that waits, in their
	// order, and reports whether the part goes with those chosen before it; the first part goes whatever is returned for it. A
	// part that is left keeps its place and waits for the next write. Where only one part waits there is no choice, and Batch is
	// not called. The function runs under a lock and must not block.
	Batch func() (add func(part P) bool)

	// Write makes the changes of the chosen parts, at least one, and stores their results before it returns. If they are of
	// several callers, ctx does not end with that of any of them. If it panics, Do panics for each of these callers, and the group
	// goes on.
	Write func(ctx context.Context, parts []P)

	// More reports whether one more write is to begin beside those under way, for the parts that wait. It runs under a lock and must
	// not block. Default: there is one write at a time.
	More func(waiting []P) bool

	// Again is how long a call waits before More is asked again for the parts that wait. Default: More is asked only as calls come.
	Again time.Duration

	// Writers is how many writes are under way at most, where More lets them begin. Default 2.
	Writers int

	// Prompt says that a caller which comes while no other has lately does not look for others before its write, since a look wakes
	// another thread: where a write costs little more than that. Of callers that come at once the first may then write alone.
	Prompt bool
}

// Group gathers the parts of concurrent callers into writes. Its methods may be called concurrently.
type Group[P any] struct {
	o *Options[P]

	mu      sync.Mutex
	waiting list[P]
	writers int
	crowded bool // the newest write was of several parts, or a part has come since it began
}

// New returns a Group. There is nothing to close: it has no goroutine while no caller waits.
func New[P any](o Options[P]) *Group[P] { return &Group[P]{o: &o} }

// list is parts that wait or are being written, and the call that each is of.
type list[P any] struct {
	parts []P
	calls []*call
}

func (l *list[P]) add(part P, c *call) { l.parts, l.calls = append(l.parts, part), append(l.calls, c) }

// keep removes the parts for which stays returns false; it calls stays with one after the other, in their order.
func (l *list[P]) keep(stays func(part P, c *call) bool) {
	rest := list[P]{l.parts[:0], l.calls[:0]}
	for i, c := range l.calls {
		if stays(l.parts[i], c) {
			rest.add(l.parts[i], c)
		}
	}
	clear(l.parts[len(rest.parts):])
	clear(l.calls[len(rest.calls):])
	*l = rest
}

// call is one call of Do.
type call struct {
	ctx   context.Context
	taken bool          // a part is being written or has been; guarded by the group
	left  atomic.Int32  // parts that are not written yet
	done  chan struct{} // closed when none is left

	panicked atomic.Pointer[beside.Panicked] // of a write of its parts; nil: none
}

// Do has parts written, and returns when each is: in one write if they fit, and otherwise none before one that precedes it.
//
// If ctx ends before the first of them is taken into a write, nothing of them is written, and the error is that of ctx. A write that
// has begun is waited for, whatever becomes of ctx. There are no other errors: what became of a part, its own result says. If a write
// of the parts panics, so does Do.
func (g *Group[P]) Do(ctx context.Context, parts ...P) error {
	if len(parts) == 0 {
		return nil
	}
	c := &call{ctx: ctx, done: make(chan struct{})}
	c.left.Store(int32(len(parts)))
	if g.enter(c, parts) {
		g.lead()
	}
	if err := g.wait(ctx, c); err != nil {
		return err
	}
	if p := c.panicked.Load(); p != nil {
		panic(p)
	}
	return nil
}

// wait waits until no part of a call is left, and asks again meanwhile whether one more write is to begin. The error is that of ctx, if
// nothing is written because of it.
func (g *Group[P]) wait(ctx context.Context, c *call) error {
	var again <-chan time.Time
	if g.o.Again > 0 {
		ticker := time.NewTicker(g.o.Again)
		defer ticker.Stop()
		again = ticker.C
	}
	for {
		select {
		case <-c.done:
			return nil
		case <-again:
			if g.isMore() {
				go g.lead()
			}
		case <-ctx.Done():
			if g.withdraw(c) {
				return ctx.Err()
			}
			<-c.done
			return nil
		}
	}
}

// enter adds parts to those that wait, and reports whether the caller is to write.
func (g *Group[P]) enter(c *call, parts []P) (leads bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range parts {
		g.waiting.add(p, c)
	}
	leads = g.writers == 0 || g.o.More != nil && g.writers < cmp.Or(g.o.Writers, 2) && g.o.More(g.waiting.parts)
	if leads {
		g.writers++
	}
	g.crowded = g.crowded || g.writers > 1 || !leads
	return leads
}

// isMore reports whether the caller is to write beside others what waits.
func (g *Group[P]) isMore() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	more := len(g.waiting.parts) > 0 && g.writers < cmp.Or(g.o.Writers, 2) && g.o.More(g.waiting.parts)
	if more {
		g.writers++
		g.crowded = true
	}
	return more
}

// withdraw takes back the parts of a call, and reports whether that was in time: none of them was taken, and none will be.
func (g *Group[P]) withdraw(c *call) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c.taken {
		return false
	}
	g.waiting.keep(func(_ P, of *call) bool { return of != c })
	return true
}

// lead writes the parts that wait until none does: one write in the caller's goroutine, and what came meanwhile in another, so
// that no caller writes for others without end.
func (g *Group[P]) lead() {
	batch, some := g.next()
	if !some {
		return
	}
	g.write(batch)
	if batch, some := g.next(); some {
		go func() {
			for ; some; batch, some = g.next() {
				g.write(batch)
			}
		}()
	}
}

// write writes a batch, and wakes the callers that have no part left.
func (g *Group[P]) write(batch list[P]) {
	ctx := batch.calls[0].ctx
	for _, c := range batch.calls {
		if c != batch.calls[0] && ctx.Done() != nil {
			ctx = context.WithoutCancel(ctx)
		}
	}
	p := g.try(ctx, batch.parts)
	for _, c := range batch.calls {
		if p != nil {
			c.panicked.CompareAndSwap(nil, p)
		}
		if c.left.Add(-1) == 0 {
			close(c.done)
		}
	}
}

// try calls Write, and returns what it panics with; nil if it does not. It may run in the goroutine of a caller that has no part in it.
func (g *Group[P]) try(ctx context.Context, parts []P) *beside.Panicked {
	return beside.Catch(func() { g.o.Write(ctx, parts) })
}

// next returns the parts of the next write. If none waits, the caller is no longer a writer.
func (g *Group[P]) next() (batch list[P], some bool) {
	g.gather()
	return g.take()
}

// gather yields to other goroutines for as long as that adds parts: callers that come at the same time would otherwise have the
// first of them written alone.
func (g *Group[P]) gather() {
	for before := 0; ; {
		g.mu.Lock()
		now, alone := len(g.waiting.parts), len(g.waiting.parts) == 1 && !g.crowded && g.o.Prompt
		g.mu.Unlock()
		if now <= before || alone {
			return
		}
		before = now
		runtime.Gosched()
	}
}

func (g *Group[P]) take() (batch list[P], some bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := len(g.waiting.parts)
	batch = list[P]{make([]P, 0, n), make([]*call, 0, n)}
	fits := func(P) bool { return true }
	if n > 1 {
		fits = g.o.Batch()
	}
	var behind *call // a part of it is left
	g.waiting.keep(func(part P, c *call) bool {
		if !c.taken && c.ctx.Err() != nil {
			return false // its caller is about to withdraw it
		}
		if c == behind || !fits(part) && len(batch.parts) > 0 {
			behind = c
			return true
		}
		c.taken = true
		batch.add(part, c)
		return false
	})
	if len(batch.parts) == 0 {
		g.writers--
	} else {
		g.crowded = len(batch.parts) > 1
	}
	return batch, len(batch.parts) > 0
}
