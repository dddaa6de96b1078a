package exchanges

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/millrace/millrace/shared/queue"
)

// beat writes what the heartbeats tell: lines of logs, and progress. A repetition writes none of them again, since each lease knows
// the number of its last one.
func (c *call) beat(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	byToken := map[string][]*queue.Beat{}
	for i := range c.request.Beats {
		b := &c.request.Beats[i]
		byToken[b.Token] = append(byToken[b.Token], &b.Beat)
	}
	var group sync.WaitGroup
	var mu sync.Mutex
	var failed error
	room := make(chan struct{}, 32)
	for token, all := range byToken {
		room <- struct{}{}
		group.Go(func() {
			defer func() { <-room }()
			lost, err := c.beatOne(ctx, token, all)
			mu.Lock()
			defer mu.Unlock()
			if lost {
				c.stop(token)
			}
			failed = errors.Join(failed, err)
		})
	}
	group.Wait()
	return failed
}

// beatOne writes the heartbeats of one lease as one, and reports whether the instance does not hold it.
func (c *call) beatOne(ctx context.Context, token string, all []*queue.Beat) (lost bool, err error) {
	b := queue.Beat{By: c.instance.Claimer(), Number: c.request.Seq + 1}
	for _, each := range all {
		b.Lines = append(b.Lines, each.Lines...)
		if each.Progress != nil {
			b.Progress = each.Progress
		}
	}
	_, err = c.x.queue.Heartbeat(ctx, token, b)
	if errors.Is(err, queue.ErrStale) || errors.Is(err, queue.ErrNoLease) || errors.Is(err, queue.ErrForeign) {
		return true, nil
	}
	return false, err
}

// end writes the results that are not written yet, with the record.
func (c *call) end(ctx context.Context) error {
	e := &c.entry
	if !e.now.Open {
		return nil
	}
	e.base = slices.Clip(e.now.Results)
	rest := c.request.Results[min(len(e.base), len(c.request.Results)):]
	ends, err := c.endAll(ctx, rest)
	if err != nil && len(ends) < len(rest) {
		return err
	}
	if e.now.Open { // the last ones are none that anything was written for
		e.now.add(e.base, e.outcomes(ends), e.results)
		e.now.Open, e.stale = false, true
	}
	for i, end := range ends {
		if !errors.Is(end.Err, queue.ErrStale) {
			continue
		}
		if err := c.x.queue.Refused(context.WithoutCancel(ctx), end.Token, rest[i].Result.Outcome); err != nil {
			c.x.log.Warn("a result that came too late was not noted", "instance", c.instance.Claimer(), "error", err)
		}
	}
	return err
}

// endAll writes results, and claims tasks in their place, if the exchange asks for some.
func (c *call) endAll(ctx context.Context, results []queue.Completion) (ends []queue.Ended, err error) {
	l := c.looked()
	if c.claimed = len(results) > 0 && c.mayClaim(); !c.claimed {
		l.endNext()
		return c.x.queue.CompleteAll(ctx, c.instance.Claimer(), results, &c.entry)
	}
	c.asked = true
	by := c.claimer()
	c.session.claims.Store(&queue.Claimer{Instance: by.Instance, Name: by.Name, Capacity: by.Capacity, Jobs: by.Jobs})
	if l != nil {
		by.Early, by.Next = l.early, l.next
	}
	var leases []queue.Lease
	ends, leases, err = c.x.queue.CompleteAllAndClaim(ctx, results, by, c.room())
	c.got(leases)
	if len(leases) > 0 || err != nil {
		l.endNext()
	}
	c.session.busy.Store(len(leases) > 1)
	return ends, err
}
