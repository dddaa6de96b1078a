package order

import (
	"context"
	"errors"
	"slices"

	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
)

// ended leaves a note for the order that has forked this one, if it is a child.
func (m *move) ended(ok bool) { m.endOf(m.order, ok) }

// endOf is ended of another child.
func (m *move) endOf(child *Order, ok bool) {
	if child.Run != "" {
		m.send(child.Path(), errand{Do: doCount, Order: child.Parent, Run: child.Run, OK: ok})
	}
}

// counts are the ends of children that are to be counted, by parent.
type counts struct {
	parents []string // in the order in which their first one was found
	of      map[string][]errand
}

func (c *counts) add(r errand) {
	if len(c.of[r.Order]) == 0 {
		c.parents = append(c.parents, r.Order)
	}
	c.of[r.Order] = append(c.of[r.Order], r)
}

// countBatch is how many ends of children are counted in one write, which has space left for their parent to go on.
const countBatch = 40

// count counts ends of children.
func (e *Engine) count(ctx context.Context, c *counts) (failed error) {
	for _, parent := range c.parents {
		for batch := range slices.Chunk(c.of[parent], countBatch) {
			if e.away(ctx, failed) {
				return failed
			}
			failed = errors.Join(failed, e.countFor(ctx, parent, batch))
		}
	}
	return failed
}

// countFor counts ends of an order's children, and lets the order go on if that decides it: in the write that takes the notes away, so
// that each counts once, whoever else does the same.
func (e *Engine) countFor(ctx context.Context, parent string, ends []errand) error {
	return e.queue.ChangeAlone(ctx, func(ctx context.Context, lost *store.Conflict) (queue.Follow, error) {
		if lost != nil {
			var err error
			if ends, err = e.left(ctx, ends); err != nil || len(ends) == 0 {
				return queue.Follow{}, err
			}
		}
		m, err := e.moveOf(ctx, parent)
		var f queue.Follow
		switch {
		case errors.Is(err, ErrNoOrder):
		case err != nil:
			return f, err
		case m.counts(ends):
			if err := m.join(ctx); err != nil {
				return f, err
			}
			f = m.write()
		}
		for i := range ends {
			f.Ops = append(f.Ops, ends[i].delete())
		}
		return f, nil
	})
}

// left returns those of some errands that are still there.
func (e *Engine) left(ctx context.Context, all []errand) ([]errand, error) {
	keys := make([]store.Key, len(all))
	for i := range all {
		keys[i] = all[i].key
	}
	items, err := e.get(ctx, keys...)
	if err != nil {
		return nil, err
	}
	var left []errand
	for i := range all {
		if items[i] != nil && items[i].Version == all[i].version {
			left = append(left, all[i])
		}
	}
	return left, nil
}

// counts adds ends of children to the order's fork, until it is decided. It reports whether that has changed anything.
func (m *move) counts(ends []errand) (changed bool) {
	f := m.order.Fork
	for i := range ends {
		if f == nil || ends[i].Run != f.Run || f.verdict() != undecided {
			continue
		}
		changed = true
		if ends[i].OK {
			f.Succeeded++
		} else {
			f.Failed++
		}
	}
	return changed
}
