package exchanges

import (
	"context"
	"time"

	"github.com/millrace/millrace/shared/queue"
)

// An instance that has told the ends of tasks, and for which there was no other, asks again at once and waits; and where tasks come one by one, so
// does the next task. So that exchange lingers before it reads and writes anything: a task that is added in this process meanwhile is started for
// it by the write that adds it, under the condition that the record is as this process has left it. It goes by the instance as the exchange before
// has read it, a moment ago, as every claim does. Its wait is expected even before it comes (see [queue.Queue.Expect]), so that the same happens to a task
// that is added while the exchange before it ends the others, or is on its way back.

const (
	// lingerFor is how long an exchange lingers. What other processes have added is found so much later.
	lingerFor = 10 * time.Millisecond

	// lingerWithin is how long after the beginning of the exchange before it must come.
	lingerWithin = 100 * time.Millisecond

	// leastLinger is how long an exchange must wait to linger.
	leastLinger = 10 * lingerFor
)

// lingers reports whether the instance has told ends, so that its next exchange lingers.
func (r *rest) lingers() bool { return !r.ended.IsZero() }

// mayLinger reports whether the instance's leases need nothing meanwhile.
func (s *session) mayLinger() bool { return !s.changed.Load() && time.Until(s.due) >= leastLinger }

// linger makes an exchange that gets a task within lingerFor; done is false if it has to be made as any other.
func (c *call) linger(ctx context.Context, before *rest) (got Response, done bool, err error) {
	if !c.x.queue.IsQuiet(c.waits(), before.mark) {
		return got, false, nil
	}
	now := record{Seq: c.request.Seq, Expires: c.instance.Expires.UnixMicro(), version: c.session.last.version}
	now.hold(c.session.held)
	c.entry = entry{x: c.x, id: c.id, explain: c.request.Explain, now: now, stale: true}
	w := c.begun(ctx, before.next)
	before.endNext()
	if w == nil {
		w = c.x.queue.Wait(c.waits())
		if !w.IsQuiet(before.mark) {
			w.End()
			return got, false, nil
		}
		w.Accept(c.claimer(), c.room())
		c.pause(ctx, w)
	}
	leases, unknown := w.Leases()
	if len(leases) > 0 || unknown != nil {
		c.got(leases)
		got, err = c.finish(ctx, unknown) // the record has them: whoever repeats the exchange gets them too
		return got, true, err
	}
	c.lookAgain(ctx)
	return got, false, nil
}

// expect returns the wait that follows an exchange with ends, which tasks that are added meanwhile wait for; nil if none is to. An instance that has
// found several the last time probably does so again, and what is added need not wait for that.
func (x *Exchanges) expect(s *session, by *queue.Claimer, r *Request) *queue.Waiting {
	if r.Max <= 0 || len(r.Beats) > 0 || s.busy.Load() {
		return nil
	}
	return x.queue.Expect(*by)
}

// soon ends an exchange that has told ends and has claimed in vain: if a task was added meanwhile, whoever adds it starts it.
func (c *call) soon(ctx context.Context) error {
	l := c.looked()
	if l == nil {
		return nil
	}
	if len(c.entry.now.Stops) > 0 { // which are to be told at once
		l.endNext()
	}
	w := c.begun(ctx, l.next)
	if w == nil {
		return nil
	}
	l.endNext()
	leases, unknown := w.Leases()
	c.got(leases)
	return unknown // the record has them: whoever repeats the exchange gets them too
}

// begun returns an expected wait after it has begun and is over, if a task is to be started for it; otherwise nil. It does not begin for a caller
// that has left, or has made another exchange: nobody would run the task.
func (c *call) begun(ctx context.Context, next *queue.Waiting) *queue.Waiting {
	if next == nil || ctx.Err() != nil || len(c.turn.next) > 0 || !next.Begin(c.claimer(), c.room()) {
		return nil
	}
	<-next.Ready()
	return next
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
