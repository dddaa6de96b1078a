package queue

import (
	"cmp"
	"context"
	"slices"

	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
)

// first returns the head of an ordered queue of which no task runs, if the claimer may run it. It reads the head from the store,
// after the limit: a running task may return to its place for another attempt at any time, and nothing may overtake it then. It
// costs a read of each line of the queue.
//
// Race: between the reads of the limit and of the head, another process may start the task before the head, and that task may be
// back at its place when this claim starts what it found. So each start increments the queue's count of starts, under the
// condition that it is as it was read before both.
func (c *claim) first(ctx context.Context) ([]layout.Place, error) {
	if err := c.view.readOrder(ctx); err != nil {
		return nil, err
	}
	running, err := c.q.slotsTaken(ctx, layout.QueueLimit(c.queue.Name))
	if err != nil || running > 0 {
		return nil, err
	}
	lines, err := c.q.known.Of(ctx, c.queue.Name)
	if err != nil {
		return nil, err
	}
	mine, others, err := c.heads(ctx, lines)
	if err != nil {
		return nil, err
	}
	for i := range others {
		before, _ := slices.BinarySearchFunc(mine, others[i], layout.ByRank)
		if before == len(mine) {
			break
		}
		if served, err := c.q.served(ctx, others[i].Line()); err != nil || served {
			return mine[:before], err // the next task is for another claimer
		}
	}
	return mine, nil
}

// heads reads the first entries of a queue's lines by rank: up to c.reach of the lines that the claimer takes from, as far as
// the order over these is known, and the first entry of each other line.
func (c *claim) heads(ctx context.Context, lines []layout.Line) (mine, others []layout.Place, err error) {
	known := ""
	for _, l := range lines {
		takes, limit := slices.Contains(c.lines, l), 1
		if takes {
			limit = c.reach
		}
		found, more, err := c.headOf(ctx, l, limit)
		switch {
		case err != nil:
			return nil, nil, err
		case !takes:
			others = append(others, found...)
			continue
		case more && len(found) > 0:
			known = earlier(known, found[len(found)-1].At.Sort)
		}
		mine = append(mine, found...)
	}
	slices.SortFunc(mine, layout.ByRank)
	slices.SortFunc(others, layout.ByRank)
	return head(upTo(mine, known), c.reach), others, nil
}

// headOf reads the first entries of a line, at least limit if there are so many. The line may have several parts, if the queue was not
// ordered before.
func (c *claim) headOf(ctx context.Context, l layout.Line, limit int) (found []layout.Place, more bool, err error) {
	r := store.Range{Table: store.Work, Partition: layout.ReadyPartition(l), Limit: limit}
	page, err := c.q.store.Query(ctx, r)
	switch {
	case err != nil:
		return nil, false, layout.Failure("read an index", err)
	case len(page.Items) == 0 || !layout.IsSignpost(&page.Items[0]):
		found, err = layout.ReadPlaces(page.Items)
		return found, page.More, err
	}
	var post layout.Signpost
	if err := layout.Decode(&page.Items[0], &post); err != nil {
		return nil, false, err
	}
	r.From = page.Items[0].Key.Sort + "\x00"
	return layout.PlacesIn(ctx, c.q.store, layout.ReadyParts(l, post.Read), r)
}

// earlier returns the lesser of two ranks or times; "" and 0 are none.
func earlier[T cmp.Ordered](a, b T) T {
	var none T
	if a == none || b != none && b < a {
		return b
	}
	return a
}

// upTo returns the entries up to a rank; sorted is sorted by rank, and "" is no bound.
func upTo(sorted []layout.Place, rank string) []layout.Place {
	n := len(sorted)
	for rank != "" && n > 0 && sorted[n-1].At.Sort > rank {
		n--
	}
	return sorted[:n]
}
