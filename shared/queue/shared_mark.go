package queue

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
)

// lookAhead is how many entries beyond those wanted a claimer reads if other processes have claimed from the queue lately, to
// find some that are not marked. If all are marked, it reads on with 4*lookAhead more in each read.
const lookAhead = 64

// pick picks entries of the process's share of the line, where it is shared out, or else of all.
func (v *sharedView) pick(ctx context.Context, n int) ([]layout.Place, error) {
	picks, err := v.fromShare(ctx, n)
	if err == nil && len(picks) == 0 {
		picks, err = v.fromAll(ctx, n)
	}
	if l, may := v.mayShare(); may && len(picks) > 0 {
		v.q.parts.picked(l, len(picks))
	}
	return picks, err
}

// pickAlone picks entries of a store that other processes claim from too, by one plain conditional write: claimers that raced with
// tickets would pay for a ticket, a transaction and a void each. A claimer marks the first of its entries as taken up to the
// last, and other claimers go on behind the marked ones. A mark is only a hint: it expires, and the condition on the task's
// item decides who starts it. No mark is written while no rival was met lately.
func (v *sharedView) pickAlone(ctx context.Context, n int) ([]layout.Place, error) {
	rivals, limit := v.metLately(v.c.queue.Name), n
	if rivals {
		limit += lookAhead
	}
	for picks := []layout.Place(nil); ; limit = n + 4*lookAhead {
		found, marks, err := v.look(ctx, limit)
		if err != nil {
			v.notStarted(picks)
			return nil, err
		}
		if len(picks) > 0 && marks {
			return picks, nil // another claim goes on from here
		}
		if !rivals && !marks {
			free, given := v.free(found)
			picked, next, others := v.chosen.pick(free, n-len(picks), v.q.micro())
			picks = append(picks, picked...)
			if len(picks) < n && (given || others) {
				v.goBehind(found)
				continue
			}
			v.foresee(next)
			return picks, nil
		}
		// If others have marked all of the found entries, look behind these.
		won, stale, err := v.contend(ctx, found, n)
		if stale {
			v.again()
			continue
		}
		if err != nil || len(won) > 0 || len(found) == 0 {
			return won, err
		}
		v.goBehind(found)
	}
}

// beyond returns the sort key from which to read on behind entries and those that are marked with them.
func (s *shared) beyond(places []layout.Place) (from string) {
	last := places[len(places)-1].At.Sort
	for _, p := range places {
		if p.Taken.Counts(s.q.micro()) {
			last = max(last, p.Taken.To)
		}
	}
	return last + "\x00"
}

// free returns the entries, by rank, that are not marked and that may be started as far as the entry says; given says that some were left
// out since another claim of this process may start them.
func (v *sharedView) free(found []layout.Place) (free []layout.Place, given bool) {
	isGiven := v.given()
	for _, line := range byLine(found) {
		free = append(free, slices.DeleteFunc(untaken(line, v.q.micro()), func(p layout.Place) bool {
			if v.passes(p) {
				return true
			}
			is := isGiven(p)
			given = given || is
			return is
		})...)
	}
	if len(v.parts) > 1 {
		slices.SortStableFunc(free, layout.ByRank)
	}
	return free, given
}

// byLine groups entries that were read line by line.
func byLine(found []layout.Place) (lines [][]layout.Place) {
	for len(found) > 0 {
		n := 1
		for n < len(found) && found[n].At.Partition == found[0].At.Partition {
			n++
		}
		lines, found = append(lines, found[:n]), found[n:]
	}
	return lines
}

// contend marks and returns a block of the found entries: the first of them, or, where other claimers are met often, and after losing to
// one, some of those that are about to be claimed. Of a block in several parts it returns what it has won. Where a store has no partitions,
// a mark that is lost costs a round trip and nothing else: there it is always the first that is left, so that no claim passes over what no
// other is about to start. stale says that a claim had better look again than go on by what it has seen.
func (v *sharedView) contend(ctx context.Context, found []layout.Place, n int) (block []layout.Place, stale bool, err error) {
	reach := v.rivals(found) + 1
	for try := 0; ; try++ {
		free, _ := v.free(found)
		free = v.chosen.without(free, v.q.micro())
		if len(free) == 0 || try == contends && !v.q.onePart {
			return nil, len(free) > 0, nil
		}
		block, _, _ := v.chosen.pick(v.block(free, n, reach, try > 0), n, v.q.micro())
		if len(block) == 0 {
			continue // others of this process were quicker
		}
		lost, err := v.q.markTaken(ctx, block)
		if err != nil {
			v.putBack(ctx, block, false) // those marks that were made would keep others off
			return nil, false, err
		}
		if len(lost) > 0 {
			v.rival()
		}
		for _, l := range lost {
			isLost := func(p layout.Place) bool { return p.At.Partition == l.first.At.Partition }
			v.notStarted(slices.DeleteFunc(slices.Clone(block), func(p layout.Place) bool { return !isLost(p) }))
			block = slices.DeleteFunc(block, isLost)
			found = behind(found, l.rival, l.first)
		}
		if len(block) > 0 {
			return block, false, nil
		}
		if v.q.onePart && lost[0].gone {
			return nil, true, nil // so are those behind it, probably
		}
		if !v.q.onePart {
			reach = min(2*reach, farthest)
		}
	}
}

// contends is how many blocks a claim tries for before it looks again: by then others have marked nearly all that it has seen.
const contends = 3

// farthest bounds how many blocks a claim that keeps losing chooses from.
const farthest = 256

// rivals returns how many blocks of found entries others claim now, if the queue's claims meet often and its lines have several parts.
func (v *sharedView) rivals(found []layout.Place) (marks int) {
	now := v.q.micro()
	if len(v.parts) <= len(v.c.lines) || !v.q.crowds.contended(v.c.queue.Name, now) {
		return 0
	}
	for i := range found {
		if found[i].Taken.Counts(now) {
			marks++
		}
	}
	return marks
}

// block returns n of the free entries: the first, or a run among the first reach*n, at the head of a random part or anywhere in it. A run
// lies in one part, if that has as many: each part is marked by itself, so that claimers who compare the heads of all parts would each win
// a few of them.
func (v *sharedView) block(free []layout.Place, n, reach int, anywhere bool) []layout.Place {
	window := head(free, reach*n)
	if reach == 1 {
		return window
	}
	slices.SortStableFunc(window, func(a, b layout.Place) int { return strings.Compare(a.At.Partition, b.At.Partition) })
	parts := byLine(window)
	first := v.below(len(parts))
	of := parts[first]
	if anywhere {
		of = of[n*v.below((len(of)+n-1)/n):]
	}
	block := slices.Clone(head(of, n))
	for i := 1; i < len(parts); i++ {
		block = append(block, head(parts[(first+i)%len(parts)], n-len(block))...)
	}
	slices.SortStableFunc(block, layout.ByRank)
	return block
}

// below returns a random number from 0 to n-1.
func (v *sharedView) below(n int) int { return int(v.q.random() % uint32(n)) }

func head(places []layout.Place, n int) []layout.Place { return places[:min(n, len(places))] }

// untaken returns the entries that are not marked.
func untaken(places []layout.Place, now int64) []layout.Place {
	free, to := make([]layout.Place, 0, len(places)), ""
	for _, p := range places {
		if p.Taken.Counts(now) {
			to = max(to, p.Taken.To)
		}
		if p.At.Sort > to {
			free = append(free, p)
		}
	}
	return free
}

// behind returns the entries without those that a rival has marked; if there is no mark, without those up to the lost one.
func behind(places []layout.Place, rival *layout.Taken, lost layout.Place) []layout.Place {
	to := lost.At.Sort
	if rival != nil {
		to = max(to, rival.To)
	}
	isBefore := func(p layout.Place) bool { return p.At.Partition == lost.At.Partition && p.At.Sort <= to }
	return slices.DeleteFunc(slices.Clone(places), isBefore)
}

// lostMark is an entry that another claimer has marked before, and that one's mark, if it is known.
type lostMark struct {
	first layout.Place
	rival *layout.Taken
	gone  bool // the entry is not there any more
}

// markTaken writes marks for a block, one in each of its parts, and returns those that were lost to others. Race: of several claimers that
// read the same head, the condition on the entry's version admits one.
func (q *Queue) markTaken(ctx context.Context, block []layout.Place) (lost []lostMark, err error) {
	firsts := marked(block, q.micro()+layout.TakenFor.Microseconds())
	errs := make([]error, len(firsts))
	var group sync.WaitGroup
	for i, p := range firsts {
		group.Go(func() { errs[i] = q.apply(ctx, p.Change()) })
	}
	group.Wait()
	for i, p := range firsts {
		conflict := store.AsConflict(errs[i])
		switch {
		case errs[i] == nil:
			p.Version++
		case conflict == nil:
			p.Taken, err = nil, layout.Failure("take an entry", errs[i])
		default:
			found := conflict.Failed[0].Found
			lost = append(lost, lostMark{first: *p, rival: markOn(found), gone: found == nil})
			p.Taken = nil
		}
	}
	return lost, err
}

// markOn returns the mark on an entry; nil: there is none.
func markOn(found *store.Item) *layout.Taken {
	if found == nil {
		return nil
	}
	p, err := layout.ReadPlace(found)
	if err != nil {
		return nil
	}
	return p.Taken
}

// unmark removes the marks of entries that were not started, so that other claimers find all entries marked with them.
func (q *Queue) unmark(ctx context.Context, left []layout.Place) {
	var ops []store.Op
	for _, p := range left {
		if p.Taken.Counts(q.micro()) && len(ops) < store.MaxOps {
			p.Taken = nil
			ops = append(ops, p.Change())
		}
	}
	if len(ops) > 0 { // it may fail if others were quicker: a mark expires
		_ = q.apply(ctx, ops...)
	}
}

// marked marks, in memory, the first entry of each line of a block as taken up to the line's last one, and returns these first
// entries.
func marked(block []layout.Place, until int64) (firsts []*layout.Place) {
	for i := range block {
		p := &block[i]
		at := slices.IndexFunc(firsts, func(first *layout.Place) bool { return first.At.Partition == p.At.Partition })
		if at < 0 {
			at, firsts = len(firsts), append(firsts, p)
			p.Taken = &layout.Taken{Until: until}
		}
		firsts[at].Taken.To = p.At.Sort
	}
	return firsts
}
