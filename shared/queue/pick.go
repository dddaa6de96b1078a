package queue

import (
	"context"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/store"
)

// pick answers the best entries of the line that nobody else is starting, at most as many as are wanted.
func (c *claim) pick(ctx context.Context) ([]place, error) {
	switch {
	case c.queue.Type == definition.Ordered:
		return c.first(ctx)
	case c.q.store.Exclusive():
		return c.q.windows.of(c.line).take(ctx, c.q, c.line, c.want)
	default:
		return c.win(ctx)
	}
}

// first answers the head of an ordered queue of which nothing runs. It is read from the store, and after the limit: the
// task that runs may come back to its place at any time, and nothing may overtake it then.
func (c *claim) first(ctx context.Context) ([]place, error) {
	used, err := c.q.usedPermits(ctx, queueLimit(c.queue.Name))
	if err != nil || len(used) > 0 {
		return nil, err
	}
	found, _, err := c.q.places(ctx, store.Range{Table: store.Work, Partition: readyPartition(c.line), Limit: 1})
	return found, err
}

// takenFor is how long a claimer that took entries has them to itself.
const takenFor = 3 * time.Second

// lookAhead is how many entries beyond those wanted a claimer reads where it has rivals, so as to find some that they have
// not taken.
const lookAhead = 64

// win settles by one plain conditional write who may start the best entries, where other processes claim too; writers
// that raced with tickets in hand would pay for a ticket, a transaction and a void each. A claimer marks the first of its
// entries as taken up to the last; whoever reads or meets the mark goes on behind it. A mark is no right: it ends by
// itself, and the task's own condition decides. While nobody else was met lately the mark is left out.
func (c *claim) win(ctx context.Context) ([]place, error) {
	q := c.q
	if c.conflict {
		q.rivals.met(c.line, q.micro())
	}
	rivals, limit := q.rivals.lately(c.line, q.micro()), c.want
	if rivals {
		limit += lookAhead
	}
	found, _, err := q.places(ctx, store.Range{Table: store.Work, Partition: readyPartition(c.line), Limit: limit})
	if err != nil {
		return nil, err
	}
	free := untaken(found, q.micro())
	if !rivals && len(free) == len(found) {
		return head(free, c.want), nil
	}
	return c.contend(ctx, found)
}

// contend takes a block of the entries found.
func (c *claim) contend(ctx context.Context, found []place) ([]place, error) {
	q := c.q
	skip := 0
	for {
		free := untaken(found, q.micro())
		if len(free) == 0 {
			return nil, nil
		}
		free = free[min(skip, len(free)-1):]
		block := head(free, c.want)
		won, rival, err := q.mark(ctx, block)
		if err != nil || won {
			return block, err
		}
		q.rivals.met(c.line, q.micro())
		found = behind(found, rival, block[0])
		skip = int(q.random() % uint32(skip+2))
	}
}

// counts reports whether a mark still means something. One that would do so for longer than any is made for is of a clock
// that runs ahead.
func (t *taken) counts(now int64) bool {
	return t != nil && t.Until > now && t.Until <= now+2*takenFor.Microseconds()
}

func head(places []place, n int) []place { return places[:min(n, len(places))] }

// untaken leaves out what others have marked.
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

// behind answers the entries after those that a rival has marked; without a mark, after the one that was lost.
func behind(places []place, rival *taken, lost place) []place {
	to := lost.key.Sort
	if rival != nil {
		to = max(to, rival.To)
	}
	for i := range places {
		if places[i].key.Sort > to {
			return places[i:]
		}
	}
	return nil
}

// mark marks a block. Race: of several claimers that read the same head, the entry's version lets one through.
func (q *Queue) mark(ctx context.Context, block []place) (won bool, rival *taken, err error) {
	first := &block[0]
	marked := first.entry
	marked.Taken = &taken{Until: q.micro() + takenFor.Microseconds(), To: block[len(block)-1].key.Sort}
	item := store.Item{Key: first.key, Version: first.version + 1, Value: encode(marked)}
	err = q.store.Write(ctx, store.Write{
		Token: q.token(), Ops: []store.Op{store.Put(item, store.VersionIs(first.version))},
	})
	conflict := store.AsConflict(err)
	switch {
	case err == nil:
		first.entry, first.version = marked, item.Version
		return true, nil, nil
	case conflict == nil:
		return false, nil, unavailable("take an entry", err)
	}
	if found, _ := conflict.At(0); found != nil {
		if p, err := readPlace(found); err == nil {
			return false, p.Taken, nil
		}
	}
	return false, nil, nil
}

// rivals remember when claimers of other processes were met last, by line.
type rivals struct {
	mu   sync.Mutex
	last map[string]int64
}

// memory is how long, in microseconds, a rival is reckoned with.
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
