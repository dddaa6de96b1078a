package exchanges

import (
	"context"
	"time"

	"github.com/millrace/millrace/shared/membership"
	"github.com/millrace/millrace/shared/queue"
)

// mostClaims bounds the claims of one response.
const mostClaims = 100

// claim claims tasks. Where the request has no results, it waits until there is one, or a lease to stop, or the time is over.
func (c *call) claim(ctx context.Context) error {
	patient := c.request.Wait > 0 && c.entry.results == 0 && len(c.entry.now.Stops) == 0
	if c.claimed {
		return c.soon(ctx) // it has claimed with the results
	}
	if !patient {
		return c.claimOnce(ctx)
	}
	return c.await(ctx, nil)
}

// await waits until there is a claim, or a lease to stop, or the time is over. first is a wait that has begun, if there is nothing to claim.
func (c *call) await(ctx context.Context, first *queue.Waiting) error {
	over := time.NewTimer(time.Until(c.ends))
	defer over.Stop()
	c.waited = true
	for w := first; ; w = nil {
		if w == nil {
			w = c.x.queue.Wait(c.waits())
			c.mark = w.Mark()
			if err := c.claimOnce(ctx); err != nil || len(c.claims) > 0 {
				w.End()
				return err
			}
			if err := c.begin(ctx); err != nil {
				w.End()
				return err
			}
		}
		again, err := c.wait(ctx, w, over.C, c.refreshBefore())
		if leases, unknown := w.Leases(); len(leases) > 0 || unknown != nil {
			c.got(leases)
			return unknown // the record has them: whoever repeats the exchange gets them too
		}
		if err != nil || !again {
			return err
		}
		if done, err := c.refresh(ctx); err != nil || done {
			w.End() // what it was woken for is for another instance
			return err
		}
	}
}

// waits returns the claimer that waits: one that wants nothing is woken for no task.
func (c *call) waits() queue.Claimer {
	by := c.instance.Claims()
	if !c.mayClaim() {
		by.Jobs = nil
	}
	return by
}

// claimOnce claims what is ready, with the record.
func (c *call) claimOnce(ctx context.Context) error {
	if !c.mayClaim() {
		c.passOn()
		return nil
	}
	c.asked = true
	leases, err := c.x.queue.Claim(ctx, c.claimer(), c.room())
	c.got(leases)
	return err
}

// mayClaim reports whether the exchange asks for claims, and the instance may have some.
func (c *call) mayClaim() bool { return c.room() > 0 && !c.instance.Draining }

// room returns how many claims the response may have beside those that an earlier try has made.
func (c *call) room() int { return min(c.request.Max, mostClaims) - len(c.entry.now.Claims) }

// claimer returns the instance as it claims by this exchange.
func (c *call) claimer() queue.Claimer {
	by := c.instance.Claims()
	by.Until, by.Beside = c.instance.Expires, &c.entry
	return by
}

// got notes claims.
func (c *call) got(leases []queue.Lease) {
	c.claims = append(c.claims, leases...)
	now := time.Now()
	for i := range leases {
		l := &leases[i]
		held := queue.Held{Token: l.Token, Expires: l.Expires, Length: l.Length, Deadline: l.Deadline}
		c.session.held[l.Token] = true
		c.session.extendIn(held.Spare(now, membership.DefaultLease), now)
	}
}

// begin stores that the exchange waits: so a later one fences it, and a repetition goes on with it.
func (c *call) begin(ctx context.Context) error {
	e := &c.entry
	if c.x.alone {
		return nil // no other process could make a later one, and nothing was done that a repetition must know
	}
	if !e.now.Waits {
		e.now.Waits, e.stale = true, true
	}
	return e.store(context.WithoutCancel(ctx))
}

// lately is how long before the end of a wait nothing is refreshed any more for an instance that holds no lease.
const lately = time.Second

// refreshBefore returns when the instance and its leases are to be kept up during a wait. What is due when the wait is about to end is
// left to the next exchange, if there is no lease that could be lost, and the instance lives on for long enough: a worker waits for just
// as long as it takes until something is due, and would be read, written and claimed for twice each time.
func (c *call) refreshBefore() time.Time {
	due, lives := c.session.due, c.instance.Expires
	if third := lives.Add(-membership.DefaultLease * 2 / 3); third.Before(due) {
		due = third
	}
	if len(c.session.held) == 0 && due.After(c.ends.Add(-lately)) && lives.After(c.ends.Add(membership.DefaultLease/3)) {
		return c.ends.Add(membership.DefaultLease) // the wait is over before
	}
	return due
}

// wait waits until something has become ready, something has become of a lease, or leases are to be extended; again is false if the
// exchange is over.
func (c *call) wait(ctx context.Context, w *queue.Waiting, over <-chan time.Time, refresh time.Time) (again bool, err error) {
	if c.mayClaim() {
		w.Accept(c.claimer(), c.room())
	}
	due := time.NewTimer(time.Until(refresh))
	defer due.Stop()
	select {
	case <-w.Ready():
		return w.Looks(), nil
	case <-c.session.wake:
		again = true
	case <-due.C:
		again = true
	case <-over:
	case <-ctx.Done():
		err = ctx.Err()
	case seq := <-c.turn.next:
		if seq == c.request.Seq {
			err = ErrReplaced
		}
	}
	w.End()
	return again, err
}

// refresh reads the instance again and keeps it and its leases up; done says that there is something to return.
func (c *call) refresh(ctx context.Context) (done bool, err error) {
	r, drained := &c.entry.now, c.instance.Draining
	if c.instance, err = c.x.members.Get(ctx, c.id); err == nil {
		c.instance, err = c.x.members.Stay(ctx, c.instance)
	}
	if err != nil {
		return true, err
	}
	r.Expires = c.instance.Expires.UnixMicro()
	if c.instance.Draining && !drained {
		r.Draining, r.Waits, c.entry.stale = true, false, true
		return true, c.keep(ctx)
	}
	err = c.keep(ctx)
	return len(r.Stops) > 0, err
}
