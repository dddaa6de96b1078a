package queue

import (
	"context"
	"slices"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/queue/rule"
	"github.com/millrace/millrace/shared/store"
)

// A task may name a preferred instance. That is a hint, and it expires: for [PreferFor] from when the task may first start, its
// entry is in an index that only instances of that name take from, and a fallback entry is due at the end of that
// time, when it is moved to the rank in the line that the task would have had. Each of the two is removed with the other. So a
// task without a hint waits for none and costs no more; a task with one costs 4 WCU more.
//
// The hint is ignored if no instance of that name could start the task now: it is gone, drains, runs other jobs, or has no free
// slot. It is ignored in an ordered queue, too, and for later attempts.

// PreferFor is how long a task is kept for the instance that it prefers.
const PreferFor = 5 * time.Second

// Lines that are kept for instances are not in the directory of lines: a claim finds them among the rules, which it reads anyway, so
// that names that are no longer used cost nothing.

// offers decides which entries of one write are kept for the instance that their tasks prefer.
type offers struct {
	q    *Queue
	set  *definition.Set
	free map[[2]string]int // by name and job: how many more tasks the instances of that name could start
}

func (q *Queue) offers(set *definition.Set) *offers {
	return &offers{q: q, set: set, free: map[[2]string]int{}}
}

// offer returns, for an entry that becomes ready, the entry that is kept for an instance and its fallback entry; both are nil if
// there is no hint.
func (o *offers) offer(ctx context.Context, e *layout.Entry, rank string) (kept, fallback *layout.Place, err error) {
	if e.Prefer == "" || !e.Line().ForInstances() || o.set.QueueOf(e.Queue).Type == definition.Ordered {
		return nil, nil, nil
	}
	who := [2]string{e.Prefer, e.Job}
	free, known := o.free[who]
	if !known {
		if free, err = o.q.freeAt(ctx, e.Prefer, e.Job); err != nil {
			return nil, nil, err
		}
	}
	if o.free[who] = free - 1; free <= 0 {
		return nil, nil, nil
	}
	until := o.q.micro() + PreferFor.Microseconds()
	l := e.Line().KeptFor(e.Prefer)
	if err := o.q.mark(ctx, l); err != nil {
		return nil, nil, err
	}
	first, second := layout.PlaceAt(layout.Key(layout.ReadyPartition(l), rank), *e), layout.PlaceAt(layout.DueKey(until, e.UUID), *e)
	first.Where, first.Until, second.Rank = l, until, rank
	return &first, &second, nil
}

// plenty is the number of free slots of an instance without a limit.
const plenty = 1 << 30

// freeAt returns how many tasks of a job the instances of a name could start now.
func (q *Queue) freeAt(ctx context.Context, name, job string) (free int, err error) {
	if q.instances == nil {
		return plenty, nil
	}
	all, err := q.instances(ctx)
	if err != nil {
		return 0, err
	}
	for i := range all {
		by := &all[i]
		if by.Name != name || !by.runs(job) {
			continue
		}
		if by.Capacity <= 0 {
			return plenty, nil
		}
		taken, err := q.slotsTaken(ctx, layout.InstanceLimit(by.Instance))
		if err != nil {
			return 0, err
		}
		free += max(0, by.Capacity-taken)
	}
	return free, nil
}

// passOn moves entries that are kept for an instance to their line, as many as one move takes, if neither this instance nor
// another of its name has a free slot.
func (q *Queue) passOn(ctx context.Context, by *Claimer, rules *rule.Set) error {
	for _, l := range by.preferred(rules) {
		found, _, err := layout.Places(ctx, q.store, store.Range{Table: store.Work, Partition: layout.ReadyPartition(l), Limit: moves})
		if err != nil {
			return err
		}
		if len(found) == 0 {
			continue
		}
		free, err := q.freeAt(ctx, l.Name, l.Job)
		if err != nil {
			return err
		}
		if free > 0 {
			continue
		}
		entries := make([]misplaced, len(found))
		for i := range found {
			entries[i] = misplaced{found[i], l.KeptFor("")}
		}
		if err := q.moveHome(ctx, entries); err != nil {
			return err
		}
	}
	return nil
}

// mark writes the marker of a line before an entry is kept in it, unless it is there.
func (q *Queue) mark(ctx context.Context, l layout.Line) error {
	rules, err := q.rules.InForce(ctx)
	if err != nil || rules.Kept[l] != 0 {
		return err
	}
	return q.rules.Keep(ctx, l, q.created())
}

// preferred returns the lines that are kept for a claimer, sorted. It takes from them first.
func (by *Claimer) preferred(rules *rule.Set) (lines []layout.Line) {
	if by.Name == "" {
		return nil
	}
	for l := range rules.Kept {
		if by.takes(l) {
			lines = append(lines, l)
		}
	}
	slices.SortFunc(lines, layout.CompareLines)
	return lines
}

// sweepPreferred removes the entries that tasks that ended without being started have left in lines kept for instances, and
// the markers of empty lines. It costs a read for each marker.
func (q *Queue) sweepPreferred(ctx context.Context) error {
	rules, err := q.rules.InForce(ctx)
	if err != nil {
		return err
	}
	old := q.micro() - sweepEvery.Microseconds()
	for l, version := range rules.Kept {
		if version > old {
			continue
		}
		found, _, err := layout.Places(ctx, q.store, store.Range{Table: store.Work, Partition: layout.ReadyPartition(l), Limit: moves})
		if err != nil {
			return err
		}
		ops := leftovers(found, old)
		if len(found) == 0 {
			ops = []store.Op{rule.Unkept(l, version)}
		}
		if len(ops) == 0 {
			continue
		}
		err = q.apply(ctx, ops...)
		q.rules.Forget()
		if err != nil && store.AsConflict(err) == nil {
			return layout.Failure("forget what was kept for an instance", err)
		}
	}
	return nil
}

// leftovers returns the operations that remove entries that were kept until before old.
func leftovers(found []layout.Place, old int64) (ops []store.Op) {
	for i := range found {
		if p := &found[i]; p.Until < old {
			ops = append(ops, store.Delete(p.At, store.VersionIs(p.Version)))
		}
	}
	return ops
}
