package exchanges

import (
	"context"
	"time"

	"github.com/millrace/millrace/shared/membership"
	"github.com/millrace/millrace/shared/queue"
)

// lull is what a process remembers of an instance that has told the ends of tasks and found no other. Its next exchange, which waits, comes at
// once, and where tasks come one by one, so does the next task. So that exchange lingers before it reads and writes anything: a task that is
// added in this process meanwhile is started for it by the write that adds it, under the condition that the record is as this process has left it.
// It goes by the instance as the exchange before has read it, a moment ago, as every claim does.
type lull struct {
	rest
	began time.Time // of the exchange before
}

const (
	// lingerFor is how long an exchange lingers. What other processes have added is found so much later.
	lingerFor = 10 * time.Millisecond

	// lullFor is how long after the beginning of the exchange before it must come.
	lullFor = 100 * time.Millisecond

	// leastLinger is how long an exchange must wait to linger.
	leastLinger = 10 * lingerFor
)

// isFor reports whether a request may linger.
func (l *lull) isFor(q *Request) bool {
	return l != nil && q.Seq > l.seq && len(q.Results) == 0 && len(q.Beats) == 0 && q.Max > 0 && q.Wait >= leastLinger &&
		time.Since(l.began) < lullFor && time.Until(l.instance.Expires) > membership.DefaultLease/3
}

// noteLull remembers an exchange with results that has claimed in vain since a moment, and of which nothing is left to be told.
func (c *call) noteLull() {
	r := &c.entry.now
	if c.claimed && !c.x.alone && c.mayClaim() && len(c.claims) == 0 && len(r.Stops) == 0 && len(r.Told) == 0 && r.version > 0 {
		c.session.lull.Store(&lull{rest{c.request.Seq, c.instance, c.mark}, c.began})
	}
}

// lulled returns the instance that makes a request if it may linger, so that it need not be read.
func (x *Exchanges) lulled(id string, r *Request) (i membership.Instance, ok bool) {
	s := x.sessions.known(id)
	if s == nil {
		return i, false
	}
	if l := s.lull.Load(); l.isFor(r) && x.queue.IsQuiet(l.instance.Claims(), l.mark) {
		return l.instance, true
	}
	return i, false
}

// linger makes an exchange that gets a task within lingerFor; done is false if it has to be made as any other.
func (c *call) linger(ctx context.Context, before *lull) (got Response, done bool, err error) {
	s := c.session
	c.instance = before.instance
	if s.last.version == 0 || s.last.Seq != before.seq || s.held == nil || s.changed.Load() || time.Until(s.due) < leastLinger {
		return got, false, nil
	}
	w := c.x.queue.Wait(c.waits())
	if !w.IsQuiet(before.mark) {
		w.End()
		return got, false, nil
	}
	s.seen = c.request.Seq
	now := record{Seq: c.request.Seq, Expires: c.instance.Expires.UnixMicro(), version: s.last.version}
	c.entry = entry{x: c.x, id: c.id, explain: c.request.Explain, now: now, stale: true}
	w.Accept(c.claimer(), min(c.request.Max, mostClaims))
	c.pause(ctx, w)
	leases, unknown := w.Leases()
	if len(leases) > 0 || unknown != nil {
		c.got(leases)
		got, err = c.finish(ctx, unknown) // the record has them: whoever repeats the exchange gets them too
		return got, true, err
	}
	c.lookAgain(ctx)
	return got, false, nil
}

// pause waits until something has become ready, or lingerFor is over.
func (c *call) pause(ctx context.Context, w *queue.Waiting) {
	over := time.NewTimer(lingerFor)
	defer over.Stop()
	select {
	case <-w.Ready():
		if w.Looks() {
			c.woken = w
		}
		return
	case <-over.C:
	case <-ctx.Done():
	case <-c.session.wake: // it says no more than that the session has changed
	case seq := <-c.turn.next:
		select {
		case c.turn.next <- seq: // for the exchange as it is made then
		default:
		}
	}
	w.End()
}

// lookAgain reads what the exchange goes on with, if that was not read when it came.
func (c *call) lookAgain(ctx context.Context) {
	if l := c.request.Look; l == nil || !l.Rests {
		return
	}
	if l, err := c.x.Look(ctx, c.id, &c.request); err == nil {
		c.request.Look = &l
	}
}
