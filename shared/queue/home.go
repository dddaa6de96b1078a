package queue

import (
	"context"
	"slices"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// A task waits in the line of whoever runs its job: this server, or instances. Which of them does is declared, and may change
// while it waits. Nothing is done then. Whoever makes an entry ready, or meets one, looks where it belongs; so does the sweep,
// in lines that nobody may look at any more. An entry that is elsewhere is moved, once, by the set that is in force and not
// by one that is some seconds old: two processes do not pass it to and fro.

// home returns the line in which a task of a job waits, and the job. Where a job is not declared, instances may run its tasks.
func home(set *definition.Set, queue, path string) (line string, job definition.Job, declared bool) {
	job, declared = set.JobOf(path)
	job.Path = path
	return lineOf(queue, job, declared), job, declared
}

// settle sends an entry that is about to become ready to where it belongs. One whose job is gone stays in the line that it was
// made for: a claim says what becomes of it.
func (e *entry) settle(set *definition.Set) {
	line, _, declared := home(set, e.Queue, e.Job)
	if !declared {
		return
	}
	if e.Line = line; line == e.Queue {
		e.Line = ""
	}
}

// refresher is the part of [definition.Book] that answers the set in force.
type refresher interface {
	Refresh(ctx context.Context) (*definition.Set, error)
}

// inForce returns the set in force, as far as the definitions tell it from one that is some seconds old.
func (q *Queue) inForce(ctx context.Context) (*definition.Set, error) {
	if book, ok := q.definitions.(refresher); ok {
		return book.Refresh(ctx)
	}
	return q.definitions.Current(ctx)
}

// homeOf returns the line of a picked task, and its job: by the set in force if it seems to be another than where it was
// picked, or if the job seems to be gone. So a claim reads that set once at most, and never where everything is in its place.
func (c *claim) homeOf(ctx context.Context, p *place, t *task.Task) (line string, job definition.Job, declared bool, err error) {
	line, job, declared = home(c.set, t.Queue, t.Job)
	if line == p.home() || c.fresh {
		return line, job, declared, nil
	}
	set, err := c.q.inForce(ctx)
	if err != nil {
		return "", job, false, err
	}
	c.set, c.fresh = set, true
	line, job, declared = home(set, t.Queue, t.Job)
	return line, job, declared, nil
}

// stray is a ready entry that belongs to another line.
type stray struct {
	place
	home string
}

// rehome moves entries to the lines that they belong to. They keep their ranks, which are those of their queue.
func (q *Queue) rehome(ctx context.Context, strays []stray) error {
	for chunk := range slices.Chunk(strays, moves) {
		way := make([]*moving, len(chunk))
		for i, s := range chunk {
			if err := q.register(ctx, s.home); err != nil {
				return err
			}
			e := s.single()
			if e.Line = s.home; e.Line == e.Queue {
				e.Line = ""
			}
			to := place{entry: e, key: work(readyPartition(s.home), s.key.Sort), version: entryVersion(e.Of, 0)}
			way[i] = &moving{from: s.place, to: to, cond: store.Absent}
		}
		if err := q.carry(ctx, way); err != nil {
			return err
		}
	}
	return nil
}

// sweepRehome bounds what one sweep moves out of one line.
const sweepRehome = 3000

// rehomeLines empties the lines of jobs that instances ran and this server runs now. It costs nothing while there are none.
func (q *Queue) rehomeLines(ctx context.Context) (moved int, err error) {
	lines, err := q.lines(ctx)
	if err != nil {
		return 0, err
	}
	for _, line := range lines {
		n, err := q.rehomeLine(ctx, line)
		if moved += n; err != nil {
			return moved, err
		}
	}
	return moved, nil
}

func (q *Queue) rehomeLine(ctx context.Context, line string) (moved int, err error) {
	queue, path, ok := splitLine(line)
	if !ok {
		return 0, nil
	}
	set, err := q.definitions.Current(ctx)
	if err != nil {
		return 0, err
	}
	if to, _, _ := home(set, queue, path); to == line {
		return 0, nil
	}
	if set, err = q.inForce(ctx); err != nil {
		return 0, err
	}
	to, _, _ := home(set, queue, path)
	if to == line {
		return 0, nil
	}
	return q.emptyInto(ctx, line, to)
}

// emptyInto moves the entries of a line, as many as a sweep may, to another of the same queue.
func (q *Queue) emptyInto(ctx context.Context, line, to string) (moved int, err error) {
	r := store.Range{Table: store.Work, Partition: readyPartition(line), Limit: moves}
	for moved < sweepRehome {
		found, more, err := q.places(ctx, r)
		if err != nil || len(found) == 0 {
			return moved, err
		}
		strays := make([]stray, len(found))
		for i := range found {
			strays[i] = stray{found[i], to}
		}
		if err := q.rehome(ctx, strays); err != nil {
			return moved, err
		}
		if moved += len(found); !more {
			return moved, nil
		}
		r.From = found[len(found)-1].key.Sort + "\x00"
	}
	return moved, nil
}
