package queue

import (
	"context"
	"slices"

	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
)

// Where other processes claim too, a claim reads past entries that cannot be started as far as the entry says: those that a rule
// holds, and those that need a slot of a concurrency key that the claim has found to be full. Reading an entry costs a hundredth
// of moving it to a held index; so a task behind a hundred thousand paused ones is found by some twenty reads, and each claim
// moves some of these.

const (
	widePage   = 4000 // the most entries of a read, if those before could not be started
	widen      = 16   // factor from one read to the next, so that few entries that cannot start cost little
	passedMost = 4800 // entries that one claim remembers to tidy
)

func (v *sharedView) keyFull(key string) {
	if v.full == nil {
		v.full = map[string]bool{}
	}
	v.full[key] = true
}

// handOver notifies other claimers if the claim has read past more entries than it has tidied.
func (v *sharedView) handOver(ctx context.Context) {
	if len(v.passed) > 0 || v.more {
		v.q.notify(ctx, noticesOf(v.c.lines))
	}
}

// passes reports whether an entry cannot be started as far as the entry says.
func (v *sharedView) passes(p layout.Place) bool {
	return v.c.rules.Holds(p.Job) || p.Limit > 0 && v.full[p.Key]
}

// withPassed returns entries together with up to maxReach that were read past, by rank; the tasks of these say whether they are
// to be held.
func (v *sharedView) withPassed(picks []layout.Place) []layout.Place {
	n := min(len(v.passed), maxReach)
	if n == 0 {
		return picks
	}
	all := slices.Concat(v.passed[:n], picks)
	v.passed = v.passed[n:]
	slices.SortStableFunc(all, layout.ByRank)
	return all
}

// look reads each part of each line until a page has an entry that may be started, and returns those pages from that entry on, part by
// part, as far as the order over all of them is known; marks says whether claimers have marked some of them.
func (v *sharedView) look(ctx context.Context, limit int) (found []layout.Place, marks bool, err error) {
	v.ahead = nil
	if v.from == nil {
		v.from = make(map[string]string, len(v.c.lines))
		for _, l := range v.c.lines {
			read, _ := v.q.parts.of(l)
			v.take(layout.ReadyParts(l, read))
		}
		v.takeEarly()
	}
	if len(v.parts) > len(v.c.lines) {
		limit = min(limit, 2*limit*len(v.c.lines)/len(v.parts)+2) // entries of a line are spread evenly
		v.readAhead(ctx, slices.DeleteFunc(slices.Clone(v.parts), v.isAhead), limit)
	}
	known := ""
	for i := 0; i < len(v.parts); i++ { // a first part may tell of others
		of, more, err := v.lookIn(ctx, v.parts[i], limit)
		if err != nil {
			return nil, false, err
		}
		if more && len(of) > 0 {
			known = earlier(known, of[len(of)-1].At.Sort)
		}
		marks = marks || slices.ContainsFunc(of, func(p layout.Place) bool { return p.Taken.Counts(v.q.micro()) })
		found = append(found, of...)
	}
	if known != "" && len(v.parts) > 1 {
		found = slices.DeleteFunc(found, func(p layout.Place) bool { return p.At.Sort > known })
	}
	return found, marks, nil
}

// isAhead reports whether the next page of a part was read already.
func (v *sharedView) isAhead(part string) bool {
	_, is := v.ahead[part]
	return is
}

// takeEarly takes the pages that were read before the claim.
func (v *sharedView) takeEarly() {
	for _, part := range v.parts {
		if page, ok := v.c.by.Early.head(part); ok {
			if v.ahead == nil {
				v.ahead = map[string]readPage{}
			}
			v.ahead[part] = page
		}
	}
}

// take adds partitions to those that the claim reads.
func (v *sharedView) take(parts []string) {
	for _, part := range parts {
		v.from[part] = ""
	}
	v.parts = append(v.parts, parts...)
}

// lookIn is look of one part; more says that the part goes on behind the page.
func (v *sharedView) lookIn(ctx context.Context, part string, limit int) (found []layout.Place, more bool, err error) {
	r := store.Range{Table: store.Work, Partition: part, Limit: limit}
	for ; ; r.Limit = min(widen*r.Limit, widePage) {
		next, on := v.from[part]
		if !on {
			return nil, false, nil
		}
		r.From = next
		page, more, err := v.read(ctx, r)
		if err != nil {
			return nil, false, err
		}
		now := v.q.micro() // a mark may reach beyond the entries that are read past
		at := slices.IndexFunc(page, func(p layout.Place) bool { return !v.passes(p) || p.Taken.Counts(now) })
		if at < 0 {
			at = len(page)
		}
		v.pass(page[:at])
		switch {
		case at < len(page):
			v.from[part] = page[at].At.Sort
			return page[at:], more, nil
		case more && at > 0:
			v.from[part] = v.beyond(page)
		default:
			delete(v.from, part)
		}
	}
}

// pass remembers entries that were read past.
func (v *sharedView) pass(places []layout.Place) {
	n := min(len(places), passedMost-len(v.passed))
	v.passed, v.more = append(v.passed, places[:n]...), v.more || n < len(places)
}

// again forgets what was read, so that the next look begins at the head.
func (v *sharedView) again() { v.from, v.parts, v.passed, v.more = nil, nil, nil, false }

// goBehind sets the next read of each line to begin behind the found entries, which other claimers have all marked.
func (v *sharedView) goBehind(found []layout.Place) {
	for _, of := range byLine(found) {
		v.from[of[0].At.Partition] = v.beyond(of)
	}
}
