package queue

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/lock"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
)

// directory holds the names of the lines in which tasks wait, or did a while ago; see forget.go.
type directory struct {
	mu    lock.Mutex
	names map[layout.Line]bool  // that were read, or registered since
	noted map[layout.Line]int64 // when this process registered them, in microseconds since 1970
	read  int64                 // when names was read, in microseconds since 1970; 0: never
	turn  int                   // which line is first at the next claim
}

// reread is the age, in microseconds, after which the directory is read again.
const reread = 10_000_000

// constant reports whether a line is always in the directory, without an item.
func constant(l layout.Line) bool {
	return l == layout.Line{Queue: definition.MainQueue} || l == layout.Line{Queue: definition.SyncQueue} || l == layout.Line{Queue: definition.EventQueue}
}

// register adds a line to the directory before a task waits in it. What this process has registered holds for a while.
func (q *Queue) register(ctx context.Context, l layout.Line) error {
	if constant(l) || q.known.notedWithin(l, q.micro(), q.registered()) {
		return nil
	}
	return q.registerAnew(ctx, l)
}

func (q *Queue) registerAnew(ctx context.Context, l layout.Line) error {
	noted, name := q.created(), l.String()
	item := store.Item{Key: layout.Key(layout.PartitionLines, store.Fit(name)), Version: noted, Value: []byte(name)}
	if err := q.apply(ctx, store.Put(item, store.Always)); err != nil {
		return layout.Failure("register a line", err)
	}
	d := &q.known
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.noted == nil {
		d.noted = map[layout.Line]int64{}
	}
	d.add(l)
	d.noted[l] = noted
	return nil
}

// notedWithin reports whether this process has registered a line less than within microseconds ago.
func (d *directory) notedWithin(l layout.Line, now, within int64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	at, noted := d.noted[l]
	return noted && now-at < within && at-now < within // clocks may be set back
}

func (d *directory) add(l layout.Line) {
	if d.names == nil {
		d.names = map[layout.Line]bool{{Queue: definition.SyncQueue}: true, {Queue: definition.EventQueue}: true, {Queue: definition.MainQueue}: true}
	}
	d.names[l] = true
}

// drop forgets a line.
func (d *directory) drop(l layout.Line) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.names, l)
	delete(d.noted, l)
}

// lines returns the names of all lines that tasks may wait in.
func (q *Queue) lines(ctx context.Context) ([]layout.Line, error) {
	d := &q.known
	d.mu.Lock()
	defer d.mu.Unlock()
	now := q.micro()
	if d.read != 0 && q.strategy.current(d.read, min(reread, q.registered())) {
		return slices.SortedFunc(maps.Keys(d.names), layout.CompareLines), nil
	}
	d.names = nil
	d.add(layout.Line{Queue: definition.MainQueue})
	for item, err := range store.All(ctx, q.store, store.Range{Table: store.Work, Partition: layout.PartitionLines}) {
		if err != nil {
			d.read = 0
			return nil, layout.Failure("read the lines", err)
		}
		d.add(layout.ParseLine(string(item.Value)))
	}
	d.read = now
	return slices.SortedFunc(maps.Keys(d.names), layout.CompareLines), nil
}

// linesFor returns the lines that a claimer takes from. If it names no queues, each claim begins with another line.
func (q *Queue) linesFor(ctx context.Context, by Claimer) ([]layout.Line, error) {
	if len(by.Queues) > 0 {
		named := make([]layout.Line, len(by.Queues))
		for i, text := range by.Queues {
			named[i] = layout.ParseLine(text)
		}
		return named, nil
	}
	all, err := q.lines(ctx)
	if err != nil {
		return nil, err
	}
	lines := make([]layout.Line, 0, len(all))
	for _, l := range all {
		if by.takes(l) {
			lines = append(lines, l)
		}
	}
	if len(lines) == 0 {
		return nil, nil
	}
	q.known.mu.Lock()
	q.known.turn++
	first := q.known.turn % len(lines)
	q.known.mu.Unlock()
	return slices.Concat(lines[first:], lines[:first]), nil
}

// takes reports whether the claimer takes from a line: an instance from the lines of its jobs, a server from all others.
func (by *Claimer) takes(l layout.Line) bool {
	if len(by.Jobs) == 0 || !l.ForInstances() {
		return len(by.Jobs) == 0 && !l.ForInstances()
	}
	return (l.Name == "" || l.Name == by.Name) && by.runs(l.Job)
}

// runs reports whether a pattern of the instance's jobs matches a job.
func (by *Claimer) runs(job string) bool {
	return slices.ContainsFunc(by.Jobs, func(pattern string) bool { return definition.Match(pattern, job) })
}

// served reports whether any claimer takes from a line.
func (q *Queue) served(ctx context.Context, l layout.Line) (bool, error) {
	if !l.ForInstances() || q.instances == nil {
		return true, nil
	}
	all, err := q.instances(ctx)
	return slices.ContainsFunc(all, func(by Claimer) bool { return by.runs(l.Job) }), err
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
