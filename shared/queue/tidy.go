package queue

import (
	"context"
	"errors"
	"slices"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
)

// tidy puts back entries that were not tried, ends tasks that are not to be started, removes stale entries, and moves those that
// are held or misplaced.
func (c *claim) tidy(ctx context.Context) error {
	q := c.q
	c.tidied = 0
	if len(c.left) > 0 {
		c.putBack(ctx)
		if c.reserves() { // a slot may have become free while these entries were taken
			q.notify(ctx, q.noticesFor(ctx, c.lines[0]))
		}
	}
	if err := c.end(ctx); err != nil {
		return err
	}
	c.discard(ctx)
	for _, s := range c.stale {
		q.passSlot(ctx, &s.Place)
	}
	if err := c.hold(ctx); err != nil {
		return err
	}
	c.tidied += len(c.misplaced)
	return q.moveHome(ctx, c.misplaced)
}

// putBack puts back entries that were not tried. From then on they may be other claims' picks, and are not this one's any more.
func (c *claim) putBack(ctx context.Context) {
	left := c.left
	if c.left = nil; len(left) == 0 {
		return
	}
	names := make(map[entryName]bool, len(left))
	for i := range left {
		names[nameOf(&left[i])] = true
	}
	c.picks = slices.DeleteFunc(slices.Clone(c.picks), func(p layout.Place) bool { return names[nameOf(&p)] })
	c.view.putBack(ctx, left, c.full)
}

// end ends the tasks that are not to be started any more, many in one write.
func (c *claim) end(ctx context.Context) error {
	if len(c.ends) == 0 {
		return nil
	}
	parts := make([]part, len(c.ends))
	for i, f := range c.ends {
		parts[i] = f
	}
	for i, err := range c.q.write(journal.WithActor(ctx, ""), parts...) { // who claims has not asked for that
		switch {
		case err == nil:
			c.ends[i].more.announce(ctx)
			c.tidied++
		case !errors.Is(err, ErrFinished) && !errors.Is(err, errRunning) && !errors.Is(err, ErrNoTask):
			return err
		}
	}
	return nil
}

// hold moves entries that a rule or a limit holds. If a rule has changed, the claim reads the rules again and starts over.
func (c *claim) hold(ctx context.Context) error {
	moved, lifted, err := c.q.hold(ctx, c.held)
	c.tidied += moved
	c.conflict = c.conflict || moved < len(c.held)
	if err == nil && lifted {
		c.q.strategy.doubt() // what was picked is found again
		c.view = c.q.strategy.view(c)
		c.rules, err = c.q.rules.InForce(ctx)
	}
	return err
}

// discard removes stale entries, unless a newer one has taken the key.
func (c *claim) discard(ctx context.Context) {
	if err := writeBundles(ctx, c.q, c.stale, nothingElse); err != nil {
		c.q.strategy.doubt() // they will be met again
		c.conflict = true
		return
	}
	for _, s := range c.stale {
		if s.gone {
			c.conflict = true
			c.q.unmark(ctx, []layout.Place{s.Place}) // its mark would keep others off what waits behind it
		} else {
			c.tidied++
		}
	}
}

// staleEntry is an entry whose task is no longer queued with the version that the entry was made for.
type staleEntry struct {
	layout.Place
	task *store.Item // as it was read; nil: there is none
	gone bool        // the entry or the task has changed meanwhile: it is not removed
}

// Race: the items of a write may become visible one by one, so that a new entry may be read before its task. The removal
// has the condition that the task is as it was read, which fails while such a write is under way.
func (s *staleEntry) ops() []store.Op {
	if s.gone {
		return nil
	}
	seen := store.Absent
	if s.task != nil {
		seen = store.VersionIs(s.task.Version)
	}
	return []store.Op{store.Delete(s.At, store.VersionIs(s.Version)), store.Check(layout.TaskKey(s.UUID), seen)}
}

func (s *staleEntry) meet(store.OpKind, *store.Item) { s.gone = true }
