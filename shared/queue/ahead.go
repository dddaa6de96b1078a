package queue

import (
	"context"
	"slices"

	"github.com/millrace/millrace/shared/store"
)

// Where other processes claim too, a claim reads past entries that cannot be started as far as the entry says: those that a rule
// holds, and those that need a slot of a concurrency key that the claim has found to be full. Reading an entry costs a hundredth
// of moving it to a held index; so a task behind a hundred thousand paused ones is found by some twenty reads, and each claim
// moves some of these.

// ahead is how far a claim has read the lines of its queue.
type ahead struct {
	begun  bool
	from   map[string]string // by partition: where to read on; one that is not there has been read to its end
	full   map[string]bool   // concurrency keys that had no slot left
	passed []place           // entries that were read past and are to be tidied, at most passedMost
	more   bool              // there were more than that
}

const (
	widePage   = 4000 // the most entries of a read, if those before could not be started
	widen      = 16   // factor from one read to the next, so that few entries that cannot start cost little
	passedMost = 4800 // entries that one claim remembers to tidy
)

// occupied notes that a concurrency key has no slot left.
func (c *claim) occupied(key string) {
	if c.ahead.full == nil {
		c.ahead.full = map[string]bool{}
	}
	c.ahead.full[key] = true
}

// passes reports whether an entry cannot be started as far as the entry says.
func (c *claim) passes(p place) bool {
	return c.rules.holds(p.Job) || p.Limit > 0 && c.ahead.full[p.Key]
}

// withPassed returns entries together with up to maxReach that were read past, by rank; the tasks of these say whether they are
// to be held.
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

// look reads each line until a page has an entry that may be started, and returns those pages from that entry on, line by line,
// as far as the order over all lines is known; marks says whether claimers have marked some of them.
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

// lookIn is look of one line; more says that the line goes on behind the page.
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
		now := c.q.micro() // a mark may reach beyond the entries that are read past
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

// goBehind sets the next read of each line to begin behind the found entries, which other claimers have all marked.
func (a *ahead) goBehind(q *Queue, found []place) {
	for _, of := range byLine(found) {
		a.from[of[0].key.Partition] = q.beyond(of)
	}
}
