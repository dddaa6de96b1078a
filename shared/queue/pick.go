package queue

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/store"
)

// pick returns up to c.reach entries of the claim's lines that no other claimer is starting, the least ranks first. Ranks are
// compared over all lines of the queue.
func (c *claim) pick(ctx context.Context) ([]place, error) {
	switch {
	case c.queue.Type == definition.Ordered:
		return c.first(ctx)
	case c.q.store.Exclusive():
		return c.q.windows.best(ctx, c.q, c.lines, c.reach)
	default:
		return c.win(ctx)
	}
}

// first returns the head of an ordered queue of which no task runs, if the claimer may run it. It reads the head from the store,
// after the limit: a running task may return to its place for another attempt at any time, and nothing may overtake it then. It
// costs a read of each line of the queue.
//
// Race: between the reads of the limit and of the head, another process may start the task before the head, and that task may be
// back at its place when this claim starts what it found. So each start increments the queue's count of starts, under the
// condition that it is as it was read before both.
func (c *claim) first(ctx context.Context) ([]place, error) {
	if err := c.readOrder(ctx); err != nil {
		return nil, err
	}
	used, err := c.q.usedPermits(ctx, queueLimit(c.queue.Name))
	if err != nil || used.count() > 0 {
		return nil, err
	}
	lines, err := c.q.linesNow(ctx, c.queue.Name)
	if err != nil {
		return nil, err
	}
	mine, others, err := c.heads(ctx, lines)
	if err != nil {
		return nil, err
	}
	for i := range others {
		before, _ := slices.BinarySearchFunc(mine, others[i], byRank)
		if before == len(mine) {
			break
		}
		if served, err := c.q.served(ctx, others[i].line()); err != nil || served {
			return mine[:before], err // the next task is for another claimer
		}
	}
	return mine, nil
}

// heads reads the first entries of a queue's lines by rank: up to c.reach of the lines that the claimer takes from, as far as
// the order over these is known, and the first entry of each other line.
func (c *claim) heads(ctx context.Context, lines []string) (mine, others []place, err error) {
	known := ""
	for _, line := range lines {
		takes, limit := slices.Contains(c.lines, line), 1
		if takes {
			limit = c.reach
		}
		found, more, err := c.q.places(ctx, store.Range{Table: store.Work, Partition: readyPartition(line), Limit: limit})
		switch {
		case err != nil:
			return nil, nil, err
		case !takes:
			others = append(others, found...)
			continue
		case more && len(found) > 0:
			known = earlier(known, found[len(found)-1].key.Sort)
		}
		mine = append(mine, found...)
	}
	slices.SortFunc(mine, byRank)
	slices.SortFunc(others, byRank)
	return head(upTo(mine, known), c.reach), others, nil
}

// earlier returns the lesser of two ranks; "" is no rank.
func earlier(a, b string) string {
	if a == "" || b != "" && b < a {
		return b
	}
	return a
}

// upTo returns the entries up to a rank; sorted is sorted by rank, and "" is no bound.
func upTo(sorted []place, rank string) []place {
	n := len(sorted)
	for rank != "" && n > 0 && sorted[n-1].key.Sort > rank {
		n--
	}
	return sorted[:n]
}

// takesOrder reports whether a start increments the count of the queue's starts. A process that has the store to itself need
// not: its claims of an ordered queue come one by one.
func (c *claim) takesOrder() bool {
	return c.queue.Type == definition.Ordered && !c.q.store.Exclusive()
}

func (c *claim) readOrder(ctx context.Context) error {
	if !c.takesOrder() {
		return nil
	}
	items, err := c.q.store.Get(ctx, orderKey(c.queue.Name))
	if err != nil {
		return unavailable("read the order of a queue", err)
	}
	if c.order = 0; items[0] != nil {
		c.order = items[0].Version
	}
	return nil
}

// takenFor is how long a mark keeps other claimers from marked entries.
const takenFor = 3 * time.Second

// lookAhead is how many entries beyond those wanted a claimer reads if other processes have claimed from the queue lately, to
// find some that are not marked. If all are marked, it reads on with 4*lookAhead more in each read.
const lookAhead = 64

// win picks entries of a store that other processes claim from too, by one plain conditional write: claimers that raced with
// tickets would pay for a ticket, a transaction and a void each. A claimer marks the first of its entries as taken up to the
// last, and other claimers go on behind the marked ones. A mark is only a hint: it expires, and the condition on the task's
// item decides who starts it. No mark is written while no rival was met lately.
func (c *claim) win(ctx context.Context) ([]place, error) {
	rivals, limit := c.q.rivals.lately(c.queue.Name, c.q.micro()), c.reach
	if rivals {
		limit += lookAhead
	}
	for ; ; limit = c.reach + 4*lookAhead {
		found, marks, err := c.look(ctx, limit)
		if err != nil {
			return nil, err
		}
		if !rivals && !marks {
			return c.withPassed(head(c.free(found), c.reach)), nil
		}
		// If others have marked all of the found entries, look behind these.
		won, err := c.contend(ctx, found)
		if err != nil || len(won) > 0 || len(found) == 0 {
			return c.withPassed(won), err
		}
		c.ahead.goBehind(c.q, found)
	}
}

// beyond returns the sort key from which to read on behind entries and those that are marked with them.
func (q *Queue) beyond(places []place) (from string) {
	last := places[len(places)-1].key.Sort
	for _, p := range places {
		if p.Taken.counts(q.micro()) {
			last = max(last, p.Taken.To)
		}
	}
	return last + "\x00"
}

// free returns the entries, by rank, that are not marked and that may be started as far as the entry says.
func (c *claim) free(found []place) []place {
	var free []place
	for _, line := range byLine(found) {
		free = append(free, slices.DeleteFunc(untaken(line, c.q.micro()), c.passes)...)
	}
	if len(c.lines) > 1 {
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
func (c *claim) contend(ctx context.Context, found []place) ([]place, error) {
	q := c.q
	skip := 0
	for {
		free := c.free(found)
		if len(free) == 0 {
			return nil, nil
		}
		free = free[min(skip*c.reach, len(free)-1):]
		block := head(free, c.reach)
		lost, rival, err := q.mark(ctx, block)
		if err != nil || lost == nil {
			return block, err
		}
		q.rivals.met(c.queue.Name, q.micro())
		found = behind(found, rival, *lost)
		skip = int(q.random() % uint32(skip+2))
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
func (q *Queue) mark(ctx context.Context, block []place) (lost *place, rival *taken, err error) {
	firsts := marked(block, q.micro()+takenFor.Microseconds())
	ops := make([]store.Op, len(firsts))
	for n, p := range firsts {
		item := store.Item{Key: p.key, Version: p.version + 1, Value: encode(p.entry)}
		ops[n] = store.Put(item, store.VersionIs(p.version))
	}
	err = q.store.Write(ctx, store.Write{Token: q.token(), Ops: ops})
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
func (q *Queue) unmark(ctx context.Context, left []place) {
	var ops []store.Op
	for _, p := range left {
		if p.Taken.counts(q.micro()) && len(ops) < store.MaxOps {
			p.Taken = nil
			ops = append(ops, store.Put(store.Item{Key: p.key, Version: p.version + 1, Value: encode(p.entry)}, store.VersionIs(p.version)))
		}
	}
	if len(ops) > 0 { // it may fail if others were quicker: a mark expires
		_ = q.store.Write(ctx, store.Write{Token: q.token(), Ops: ops})
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

// rivals holds when claimers of other processes were met last, in microseconds since 1970, by queue.
type rivals struct {
	mu   sync.Mutex
	last map[string]int64
}

// rivalMemory is how long, in microseconds, a rival counts as met lately.
const rivalMemory = 10_000_000

func (r *rivals) met(line string, now int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil {
		r.last = map[string]int64{}
	}
	r.last[line] = now
}

func (r *rivals) lately(line string, now int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, known := r.last[line]
	return known && now < last+rivalMemory
}
