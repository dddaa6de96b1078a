package queue

import (
	"context"
	"slices"

	"github.com/millrace/millrace/shared/store"
)

// Where other processes claim too, a claim reads past what says by itself that it cannot be started: what a rule holds, and what
// needs a place of a concurrency key that it has found to have none. Reading an entry costs a hundredth of moving it out of the
// way; so a task behind a hundred thousand that are paused is found by some twenty reads, and those who claim move them by and
// by, some in each claim.

// ahead is how far a claim has read the lines of its queue.
type ahead struct {
	begun  bool
	from   map[string]string // by partition: where to go on; one that is not there has been read to its end
	full   map[string]bool   // concurrency keys that had no place left
	passed []place           // what was read past and is to be put out of the way, as many as one claim remembers
	more   bool              // there was more
}

const (
	widePage   = 4000 // entries of a read at most, where those before could not be started
	widen      = 16   // how many times as many each read has as the one before, so that few in the way cost little
	passedMost = 4800 // entries that one claim remembers to tidy
)

// occupied notes that a concurrency key has no place left.
func (c *claim) occupied(key string) {
	if c.ahead.full == nil {
		c.ahead.full = map[string]bool{}
	}
	c.ahead.full[key] = true
}

// passes reports whether an entry says by itself that it cannot be started.
func (c *claim) passes(p place) bool {
	return c.rules.holds(p.Job) || p.Limit > 0 && c.ahead.full[p.Key]
}

// withPassed returns entries together with some that were read past: whether those are to be held, their tasks say.
func (c *claim) withPassed(picks []place) []place {
	n := min(len(c.ahead.passed), maxReach)
	if n == 0 {
		return picks
	}
	all := slices.Concat(c.ahead.passed[:n], picks)
	c.ahead.passed = c.ahead.passed[n:]
	slices.SortStableFunc(all, byRank)
	return all
}

// look reads each line to a page with an entry that may be started, and returns those pages from that entry on, line by line, as
// far as the order over all lines is known; marks says whether claimers have marked some.
func (c *claim) look(ctx context.Context, limit int) (found []place, marks bool, err error) {
	a := &c.ahead
	if !a.begun {
		a.begun, a.from = true, make(map[string]string, len(c.lines))
		for _, line := range c.lines {
			a.from[readyPartition(line)] = ""
		}
	}
	known := ""
	for _, line := range c.lines {
		of, more, err := c.lookIn(ctx, line, limit)
		if err != nil {
			return nil, false, err
		}
		if more && len(of) > 0 {
			known = earlier(known, of[len(of)-1].key.Sort)
		}
		marks = marks || slices.ContainsFunc(of, func(p place) bool { return p.Taken.counts(c.q.micro()) })
		found = append(found, of...)
	}
	if known != "" && len(c.lines) > 1 {
		found = slices.DeleteFunc(found, func(p place) bool { return p.key.Sort > known })
	}
	return found, marks, nil
}

// lookIn is look of one line; more says that it goes on behind the page.
func (c *claim) lookIn(ctx context.Context, line string, limit int) (found []place, more bool, err error) {
	r := store.Range{Table: store.Work, Partition: readyPartition(line), Limit: limit}
	from := c.ahead.from
	for ; ; r.Limit = min(widen*r.Limit, widePage) {
		next, on := from[r.Partition]
		if !on {
			return nil, false, nil
		}
		r.From = next
		page, more, err := c.q.places(ctx, r)
		if err != nil {
			return nil, false, err
		}
		now := c.q.micro() // a mark may reach beyond what is read past
		at := slices.IndexFunc(page, func(p place) bool { return !c.passes(p) || p.Taken.counts(now) })
		if at < 0 {
			at = len(page)
		}
		c.ahead.pass(page[:at])
		switch {
		case at < len(page):
			from[r.Partition] = page[at].key.Sort
			return page[at:], more, nil
		case more && at > 0:
			from[r.Partition] = c.q.beyond(page)
		default:
			delete(from, r.Partition)
		}
	}
}

// pass remembers entries that were read past.
func (a *ahead) pass(places []place) {
	n := min(len(places), passedMost-len(a.passed))
	a.passed, a.more = append(a.passed, places[:n]...), a.more || n < len(places)
}

// goBehind goes on behind entries of which all are others' already.
func (a *ahead) goBehind(q *Queue, found []place) {
	for _, of := range byLine(found) {
		a.from[of[0].key.Partition] = q.beyond(of)
	}
}
