package queue

import (
	"context"
	"slices"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// A task waits in the line of those who run its job: this server, or instances. The definitions say which, and may change while it
// waits. A task that becomes ready goes to its line as it is then; a misplaced ready entry is moved by a claim that meets it, or by
// the sweep, which looks at the lines of jobs that instances ran. These two go by the set in force and not by one that is some
// seconds old, so that two processes do not move an entry back and forth.

// refresher is the part of [definition.Catalog] that reads the set in force.
type refresher interface {
	Refresh(ctx context.Context) (*definition.Set, error)
}

// inForce returns the set in force, or that of Current if the definitions cannot refresh it.
func (q *Queue) inForce(ctx context.Context) (*definition.Set, error) {
	if catalog, ok := q.definitions.(refresher); ok {
		return catalog.Refresh(ctx)
	}
	return q.definitions.Current(ctx)
}

// undeclared says why a task is missing.
const undeclared = "its job is no longer declared"

// mayMiss reports whether a task is missing once its job is not declared. A step of an order waits for that to be mended.
func mayMiss(t *task.Task) bool { return t.Order == nil && definition.HasOwnSection(t.Job) }

// homeOf returns the line of a picked task, and its job. If the line differs from that of the pick, or the job is missing, it reads the set in
// force and decides by that, at most once in a claim.
func (c *claim) homeOf(ctx context.Context, p *layout.Place, t *task.Task) (l layout.Line, job definition.Job, declared bool, err error) {
	l, job, declared = layout.HomeOf(c.set, t.Queue, t.Job)
	if c.fresh || l == p.Home() && (declared || !mayMiss(t)) {
		return l, job, declared, nil
	}
	set, err := c.q.inForce(ctx)
	if err != nil {
		return layout.Line{}, job, false, err
	}
	c.set, c.fresh = set, true
	l, job, declared = layout.HomeOf(set, t.Queue, t.Job)
	return l, job, declared, nil
}

// misplaced is a ready entry that belongs to another line.
type misplaced struct {
	layout.Place
	home layout.Line
}

// moveHome moves misplaced entries to their lines. They keep their ranks, which are those of the queue.
func (q *Queue) moveHome(ctx context.Context, entries []misplaced) error {
	set, err := q.definitions.Current(ctx)
	if err != nil {
		return err
	}
	for chunk := range slices.Chunk(entries, moves) {
		way := make([]*moving, len(chunk))
		for i, s := range chunk {
			if err := q.known.Register(ctx, s.home); err != nil {
				return err
			}
			e := s.Single()
			e.SetLine(s.home)
			to := layout.PlaceAt(q.parts.key(set.QueueOf(s.home.Queue), s.home, s.At.Sort, s.UUID), e)
			way[i] = &moving{from: s.Place, to: to, cond: store.Absent}
		}
		if err := q.carry(ctx, way); err != nil {
			return err
		}
	}
	return nil
}

// sweepMoves is how many entries one sweep moves out of one line, rounded up to a batch.
const sweepMoves = 3000

// moveHomeLines empties the lines of jobs that instances ran and this server runs now, or that are gone. It reads only such lines.
func (q *Queue) moveHomeLines(ctx context.Context) (moved int, err error) {
	lines, err := q.known.Lines(ctx)
	if err != nil {
		return 0, err
	}
	for _, l := range lines {
		n, err := q.moveHomeLine(ctx, l)
		if moved += n; err != nil {
			return moved, err
		}
	}
	return moved, nil
}

func (q *Queue) moveHomeLine(ctx context.Context, l layout.Line) (moved int, err error) {
	if !l.ForInstances() {
		return 0, nil
	}
	set, err := q.definitions.Current(ctx)
	if err != nil {
		return 0, err
	}
	if to, gone := homeOfLine(set, l); to == l && !gone {
		return 0, nil
	}
	if set, err = q.inForce(ctx); err != nil {
		return 0, err
	}
	switch to, gone := homeOfLine(set, l); {
	case gone:
		return 0, q.missLine(ctx, l)
	case to != l:
		return q.emptyInto(ctx, l, to)
	}
	return 0, nil
}

// homeOfLine returns where the tasks of a line of instances belong; gone says that they are missing.
func homeOfLine(set *definition.Set, l layout.Line) (to layout.Line, gone bool) {
	to, _, declared := layout.HomeOf(set, l.Queue, l.Job)
	return to, !declared && definition.HasOwnSection(l.Job)
}

// missLine ends tasks of a line whose job is gone as missing, about sweepMoves at most, and removes their entries.
func (q *Queue) missLine(ctx context.Context, l layout.Line) error {
	parts, err := layout.PartsOf(ctx, q.store, l)
	if err != nil {
		return err
	}
	r := store.Range{Table: store.Work, Limit: purgeBatch}
	for looked := 0; looked < sweepMoves; looked += purgeBatch {
		set, err := q.inForce(ctx) // it may be declared again meanwhile
		if err != nil {
			return err
		}
		if _, gone := homeOfLine(set, l); !gone {
			return nil
		}
		found, more, err := layout.PlacesIn(ctx, q.store, parts, r)
		if err != nil || len(found) == 0 {
			return err
		}
		if err := q.missAll(ctx, found); err != nil || !more {
			return err
		}
		r.From = found[len(found)-1].At.Sort + "\x00"
	}
	return nil
}

// missAll ends the tasks of entries as missing, and removes the entries of these and those that do not count.
func (q *Queue) missAll(ctx context.Context, batch []layout.Place) error {
	uuids := make([]string, len(batch))
	for i := range batch {
		uuids[i] = batch[i].UUID
	}
	_, err := q.changeAll(ctx, uuids, func(i int, item *store.Item, t *task.Task) ([]event.Event, []store.Op) {
		if item.Version != batch[i].Of || !mayMiss(t) || !q.endQueued(t, task.Miss) {
			return nil, nil
		}
		t.Message = undeclared
		entry := layout.Remove(batch[i].At, batch[i].Version)
		return causedAt(item.Version, finished(t, task.Miss)...), append(layout.Conclude(t, false, store.VersionIs(item.Version)), entry)
	})
	if err != nil {
		return err
	}
	return q.discardStale(ctx, batch)
}

// discardStale removes those of the entries that do not count.
func (q *Queue) discardStale(ctx context.Context, entries []layout.Place) error {
	keys := make([]store.Key, len(entries))
	for i := range entries {
		keys[i] = layout.TaskKey(entries[i].UUID)
	}
	items, err := q.store.Get(ctx, keys...)
	if err != nil {
		return layout.Failure("read tasks", err)
	}
	var stale []*staleEntry
	for i, item := range items {
		if item == nil || item.Version != entries[i].Of {
			stale = append(stale, &staleEntry{Place: entries[i], task: item})
		}
	}
	return layout.Failure("remove entries", writeBundles(ctx, q, stale, nothingElse))
}

// emptyInto moves the entries of a line, about sweepMoves at most, to another line of the same queue.
func (q *Queue) emptyInto(ctx context.Context, l, to layout.Line) (moved int, err error) {
	parts, err := layout.PartsOf(ctx, q.store, l)
	if err != nil {
		return 0, err
	}
	r := store.Range{Table: store.Work, Limit: moves}
	for moved < sweepMoves {
		found, more, err := layout.PlacesIn(ctx, q.store, parts, r)
		if err != nil || len(found) == 0 {
			return moved, err
		}
		entries := make([]misplaced, len(found))
		for i := range found {
			entries[i] = misplaced{found[i], to}
		}
		if err := q.moveHome(ctx, entries); err != nil {
			return moved, err
		}
		if moved += len(found); !more {
			return moved, nil
		}
		r.From = found[len(found)-1].At.Sort + "\x00"
	}
	return moved, nil
}
