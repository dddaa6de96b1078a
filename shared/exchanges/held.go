package exchanges

import (
	"context"
	"slices"
	"time"

	"github.com/millrace/millrace/shared/membership"
	"github.com/millrace/millrace/shared/queue"
)

const (
	// mostStops bounds the leases to stop of one response; the next one has more.
	mostStops = 1000

	// soon is how long a lease that cannot be extended any more is left alone.
	soon = 250 * time.Millisecond

	// emptyFor is how long an instance that holds no lease is not looked at for one that it has claimed by other requests, of another
	// process: less than such a lease lasts by itself.
	emptyFor = membership.DefaultLease * 3 / 4
)

// keep extends the leases that the instance holds, where a third of them is over or something has become of one, and notes
// those that it is to stop.
func (c *call) keep(ctx context.Context) error {
	s := c.session
	if s.unwatch == nil {
		s.unwatch = c.x.queue.WatchLeases(c.instance.Claimer(), s.notice)
	}
	if changed := s.changed.Swap(false); s.held != nil && !changed && time.Now().Before(s.due) {
		c.forget()
		return nil
	}
	held, err := c.x.queue.Keep(context.WithoutCancel(ctx), c.instance.Claimer(), membership.DefaultLease)
	if err != nil {
		s.changed.Store(true)
		return err
	}
	c.compare(held)
	return nil
}

// compare notes what the instance holds now, and what of that and of what it held before it is to stop.
func (c *call) compare(held []queue.Held) {
	s, r := c.session, &c.entry.now
	now := time.Now()
	before := s.held
	if before == nil {
		before = c.before.held() // another process has made the exchange before, or this one has been started since
	}
	s.held, s.due = make(map[string]bool, len(held)), now.Add(membership.DefaultLease/3)
	if len(held) == 0 {
		s.due = now.Add(emptyFor)
	}
	for i := range held {
		h := &held[i]
		s.held[h.Token] = true
		s.extendIn(h.Spare(now, membership.DefaultLease), now)
		if h.Stop && !slices.Contains(r.Told, h.Token) && !c.stop(h.Token) {
			s.changed.Store(true)
		}
	}
	for token := range before {
		if !s.held[token] && !slices.Contains(r.Told, token) && !c.stop(token) {
			s.held[token] = true // to be told another time
			s.changed.Store(true)
		}
	}
	c.forget()
}

// forget drops what the instance was told to stop and does not hold, as far as is known: tokens that were never given too.
func (c *call) forget() {
	r := &c.entry.now
	r.Told = slices.DeleteFunc(slices.Clone(r.Told), func(token string) bool { return !c.session.held[token] })
}

// extendIn notes that leases are to be looked at after so long.
func (s *session) extendIn(spare time.Duration, now time.Time) {
	if at := now.Add(max(spare, soon)); at.Before(s.due) {
		s.due = at
	}
}

// stop adds a lease to those that the instance is to stop, unless it says how its task ended. It returns false if there is no room.
func (c *call) stop(token string) bool {
	r := &c.entry.now
	if slices.Contains(r.Stops, token) || slices.ContainsFunc(c.request.Results, func(e queue.Completion) bool { return e.Token == token }) {
		return true
	}
	if len(r.Stops) == mostStops {
		return false
	}
	r.Stops = append(slices.Clip(r.Stops), token)
	r.Waits, c.entry.stale = false, true
	return true
}

// told returns what the instance was told to stop, after another response.
func told(before, stops []string) []string {
	all := append(slices.Clone(before), stops...)
	return all[max(0, len(all)-2*mostStops):]
}
