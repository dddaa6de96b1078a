package queue

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/store"
)

// directory holds the names of the lines in which tasks wait, or did a while ago; see forget.go.
type directory struct {
	mu    chanMutex
	names map[string]bool  // that were read, or registered since
	noted map[string]int64 // when this process registered them, in microseconds since 1970
	read  int64            // when names was read, in microseconds since 1970; 0: never
	turn  int              // which line is first at the next claim
}

// reread is the age, in microseconds, after which the directory is read again.
const reread = 10_000_000

// constant reports whether a line is always in the directory, without an item.
func constant(name string) bool {
	return name == definition.MainQueue || name == definition.SyncQueue || name == definition.EventQueue
}

// register adds a line to the directory before a task waits in it. What this process has registered holds for a while.
func (q *Queue) register(ctx context.Context, name string) error {
	if constant(name) || q.known.notedWithin(name, q.micro(), q.registered()) {
		return nil
	}
	return q.registerAnew(ctx, name)
}

func (q *Queue) registerAnew(ctx context.Context, name string) error {
	noted := q.created()
	item := store.Item{Key: work(partitionLines, fit(name)), Version: noted, Value: []byte(name)}
	if err := q.store.Write(ctx, store.Write{Token: q.token(), Ops: []store.Op{store.Put(item, store.Always)}}); err != nil {
		return unavailable("register a line", err)
	}
	d := &q.known
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.noted == nil {
		d.noted = map[string]int64{}
	}
	d.add(name)
	d.noted[name] = noted
	return nil
}

// notedWithin reports whether this process has registered a line less than within microseconds ago.
func (d *directory) notedWithin(name string, now, within int64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	at, noted := d.noted[name]
	return noted && now-at < within && at-now < within // clocks may be set back
}

func (d *directory) add(name string) {
	if d.names == nil {
		d.names = map[string]bool{definition.SyncQueue: true, definition.EventQueue: true, definition.MainQueue: true}
	}
	d.names[name] = true
}

// drop forgets a line.
func (d *directory) drop(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.names, name)
	delete(d.noted, name)
}

// lines returns the names of all lines that tasks may wait in.
func (q *Queue) lines(ctx context.Context) ([]string, error) {
	d := &q.known
	d.mu.Lock()
	defer d.mu.Unlock()
	now := q.micro()
	if d.read != 0 && q.strategy.current(d.read, min(reread, q.registered())) {
		return sortedKeys(d.names), nil
	}
	d.names = nil
	d.add(definition.MainQueue)
	for item, err := range store.All(ctx, q.store, store.Range{Table: store.Work, Partition: partitionLines}) {
		if err != nil {
			d.read = 0
			return nil, unavailable("read the lines", err)
		}
		d.add(string(item.Value))
	}
	d.read = now
	return sortedKeys(d.names), nil
}

// linesFor returns the lines that a claimer takes from. If it names no queues, each claim begins with another line.
func (q *Queue) linesFor(ctx context.Context, by Claimer) ([]string, error) {
	if len(by.Queues) > 0 {
		return by.Queues, nil
	}
	all, err := q.lines(ctx)
	if err != nil {
		return nil, err
	}
	lines := make([]string, 0, len(all))
	for _, line := range all {
		if by.takes(line) {
			lines = append(lines, line)
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
func (by *Claimer) takes(line string) bool {
	_, job, forInstances := splitLine(line)
	if len(by.Jobs) == 0 || !forInstances {
		return len(by.Jobs) == 0 && !forInstances
	}
	_, name := splitPreferred(line)
	return (name == "" || name == by.Name) && by.runs(job)
}

// runs reports whether a pattern of the instance's jobs matches a job.
func (by *Claimer) runs(job string) bool {
	return slices.ContainsFunc(by.Jobs, func(pattern string) bool { return definition.Match(pattern, job) })
}

// served reports whether any claimer takes from a line.
func (q *Queue) served(ctx context.Context, line string) (bool, error) {
	_, job, forInstances := splitLine(line)
	if !forInstances || q.instances == nil {
		return true, nil
	}
	all, err := q.instances(ctx)
	return slices.ContainsFunc(all, func(by Claimer) bool { return by.runs(job) }), err
}

// queueOf returns the queue of a line.
func queueOf(line string) string {
	name, _, _ := splitLine(line)
	return name
}

// splitLine returns the queue of a line and, if the line is of a job that instances run, the job; see [lineOf].
func splitLine(line string) (queue, job string, forInstances bool) {
	at := strings.Index(line, "@/") // no name has a slash, and every path begins with one
	if at < 0 {
		return line, "", false
	}
	job, _ = splitPreferred(line[at+1:])
	return line[:at], job, true
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
