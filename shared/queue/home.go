package queue

import (
	"context"
	"slices"

	"github.com/millrace/millrace/shared/definition"
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

// homeOf returns the line of a picked task, and its job. If the line differs from that of the pick, it reads the set in force
// and decides by that, at most once in a claim.
func (c *claim) homeOf(ctx context.Context, p *layout.Place, t *task.Task) (l layout.Line, job definition.Job, declared bool, err error) {
	l, job, declared = layout.HomeOf(c.set, t.Queue, t.Job)
	if l == p.Home() || c.fresh {
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

// moveHomeLines empties the lines of jobs that instances ran and this server runs now. It reads only such lines.
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
	if to, _, _ := layout.HomeOf(set, l.Queue, l.Job); to == l {
		return 0, nil
	}
	if set, err = q.inForce(ctx); err != nil {
		return 0, err
	}
	to, _, _ := layout.HomeOf(set, l.Queue, l.Job)
	if to == l {
		return 0, nil
	}
	return q.emptyInto(ctx, l, to)
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
