package queue

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/queue/view"
)

// linesFor returns the lines that a claimer takes from. If it names no queues, each claim begins with another line.
func (q *Queue) linesFor(ctx context.Context, by Claimer) ([]layout.Line, error) {
	if len(by.Queues) > 0 {
		named := make([]layout.Line, len(by.Queues))
		for i, text := range by.Queues {
			named[i] = layout.ParseLine(text)
		}
		return named, nil
	}
	all, err := q.known.Lines(ctx)
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
	first := int(q.turn.Add(1) % uint64(len(lines)))
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

// runners returns the instances that may claim tasks; none if that is not known.
func (q *Queue) runners(ctx context.Context) ([]view.Runner, error) {
	if q.instances == nil {
		return nil, nil
	}
	all, err := q.instances(ctx)
	runners := make([]view.Runner, len(all))
	for i := range all {
		runners[i] = view.Runner{Instance: all[i].Instance, Jobs: all[i].Jobs, Capacity: all[i].Capacity}
	}
	return runners, err
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
