package queue

import (
	"context"
	"slices"
	"time"

	"github.com/millrace/millrace/shared/store"
)

// takenFor is how long a mark keeps other claimers from marked entries.
const takenFor = 3 * time.Second

// lookAhead is how many entries beyond those wanted a claimer reads if other processes have claimed from the queue lately, to
// find some that are not marked. If all are marked, it reads on with 4*lookAhead more in each read.
const lookAhead = 64

// pick picks entries of a store that other processes claim from too, by one plain conditional write: claimers that raced with
// tickets would pay for a ticket, a transaction and a void each. A claimer marks the first of its entries as taken up to the
// last, and other claimers go on behind the marked ones. A mark is only a hint: it expires, and the condition on the task's
// item decides who starts it. No mark is written while no rival was met lately.
func (v *sharedView) pick(ctx context.Context, n int) ([]place, error) {
	rivals, limit := v.metLately(), n
	if rivals {
		limit += lookAhead
	}
	for ; ; limit = n + 4*lookAhead {
		found, marks, err := v.look(ctx, limit)
		if err != nil {
			return nil, err
		}
		if !rivals && !marks {
			return v.withPassed(head(v.free(found), n)), nil
		}
		// If others have marked all of the found entries, look behind these.
		won, err := v.contend(ctx, found, n)
		if err != nil || len(won) > 0 || len(found) == 0 {
			return v.withPassed(won), err
		}
		v.goBehind(found)
	}
}

// beyond returns the sort key from which to read on behind entries and those that are marked with them.
func (s *shared) beyond(places []place) (from string) {
	last := places[len(places)-1].key.Sort
	for _, p := range places {
		if p.Taken.counts(s.q.micro()) {
			last = max(last, p.Taken.To)
		}
	}
	return last + "\x00"
}

// free returns the entries, by rank, that are not marked and that may be started as far as the entry says.
func (v *sharedView) free(found []place) []place {
	var free []place
	for _, line := range byLine(found) {
		free = append(free, slices.DeleteFunc(untaken(line, v.q.micro()), v.passes)...)
	}
	if len(v.c.lines) > 1 {
		slices.SortStableFunc(free, byRank)
	}
	return free
}

// byLine groups entries that were read line by line.
func byLine(found []place) (lines [][]place) {
	for len(found) > 0 {
		n := 1
		for n < len(found) && found[n].key.Partition == found[0].key.Partition {
			n++
		}
		lines, found = append(lines, found[:n]), found[n:]
	}
	return lines
}

// contend marks and returns a block of the found entries: the first, or, after losing to another claimer, a random one of the
// next.
func (v *sharedView) contend(ctx context.Context, found []place, n int) ([]place, error) {
	skip := 0
	for {
		free := v.free(found)
		if len(free) == 0 {
			return nil, nil
		}
		free = free[min(skip*n, len(free)-1):]
		block := head(free, n)
		lost, rival, err := v.mark(ctx, block)
		if err != nil || lost == nil {
			return block, err
		}
		v.rival()
		found = behind(found, rival, *lost)
		skip = int(v.q.random() % uint32(skip+2))
	}
}

// counts reports whether a mark is in force. One that would be for longer than 2*takenFor was made by a clock that runs ahead,
// and is ignored.
func (t *taken) counts(now int64) bool {
	return t != nil && t.Until > now && t.Until <= now+2*takenFor.Microseconds()
}

func head(places []place, n int) []place { return places[:min(n, len(places))] }

// untaken returns the entries that are not marked.
func untaken(places []place, now int64) []place {
	free, to := make([]place, 0, len(places)), ""
	for _, p := range places {
		if p.Taken.counts(now) {
			to = max(to, p.Taken.To)
		}
		if p.key.Sort > to {
			free = append(free, p)
		}
	}
	return free
}

// behind returns the entries without those that a rival has marked; if there is no mark, without those up to the lost one.
func behind(places []place, rival *taken, lost place) []place {
	to := lost.key.Sort
	if rival != nil {
		to = max(to, rival.To)
	}
	return slices.DeleteFunc(places, func(p place) bool { return p.key.Partition == lost.key.Partition && p.key.Sort <= to })
}

// mark writes marks for a block, one in each of its lines. It returns nil if the block is won, and otherwise the entry that was
// lost and the rival's mark. Race: of several claimers that read the same head, the condition on the entry's version admits one.
func (s *shared) mark(ctx context.Context, block []place) (lost *place, rival *taken, err error) {
	firsts := marked(block, s.q.micro()+takenFor.Microseconds())
	ops := make([]store.Op, len(firsts))
	for n, p := range firsts {
		ops[n] = p.change()
	}
	err = s.q.apply(ctx, ops...)
	conflict := store.AsConflict(err)
	switch {
	case err == nil:
		for _, p := range firsts {
			p.version++
		}
		return nil, nil, nil
	case conflict == nil:
		return nil, nil, unavailable("take an entry", err)
	}
	lost = firsts[conflict.Failed[0].Op]
	if found := conflict.Failed[0].Found; found != nil {
		if p, err := readPlace(found); err == nil {
			rival = p.Taken
		}
	}
	return lost, rival, nil
}

// unmark removes the marks of entries that were not started, so that other claimers find all entries marked with them.
func (s *shared) unmark(ctx context.Context, left []place) {
	var ops []store.Op
	for _, p := range left {
		if p.Taken.counts(s.q.micro()) && len(ops) < store.MaxOps {
			p.Taken = nil
			ops = append(ops, p.change())
		}
	}
	if len(ops) > 0 { // it may fail if others were quicker: a mark expires
		_ = s.q.apply(ctx, ops...)
	}
}

// marked marks, in memory, the first entry of each line of a block as taken up to the line's last one, and returns these first
// entries.
func marked(block []place, until int64) (firsts []*place) {
	for i := range block {
		p := &block[i]
		at := slices.IndexFunc(firsts, func(first *place) bool { return first.key.Partition == p.key.Partition })
		if at < 0 {
			at, firsts = len(firsts), append(firsts, p)
			p.Taken = &taken{Until: until}
		}
		firsts[at].Taken.To = p.key.Sort
	}
	return firsts
}
