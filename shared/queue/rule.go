package queue

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/notifier"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/queue/rule"
)

// notifyUnheld notifies claimers of tasks of a job that no claim has moved while the rule was in force, in the job's present queue.
func (q *Queue) notifyUnheld(ctx context.Context, path string) error {
	set, err := q.definitions.Current(ctx)
	if err != nil {
		return err
	}
	job, _ := set.JobOf(path)
	l, _, _ := layout.HomeOf(set, cmp.Or(job.Queue, definition.MainQueue), path)
	notices, _, _, err := q.noticesReady(ctx, l)
	q.notify(ctx, notices)
	return err
}

// releaseAtOnce is how many tasks SetRule releases at most before it returns; the sweep releases the rest.
const releaseAtOnce = 10_000

// SetRule sets a rule of a job's path, or removes it if on is false; both are idempotent. No claim that begins after SetRule has
// returned starts a task that the rule holds. Removing the last rule releases the held tasks, in order. A task of an ordered queue
// leaves its place while it is held: those behind it may start until it is released.
func (q *Queue) SetRule(ctx context.Context, path string, kind rule.Kind, on bool) error {
	lifted, err := q.rules.SetRule(ctx, path, kind, on)
	q.doubtIf(err)
	if err != nil || !lifted {
		return err
	}
	_, err = q.release(ctx, ruleHold(path), releaseAtOnce)
	return errors.Join(err, q.notifyUnheld(ctx, path))
}

// Suspend suspends a queue, or a family of queues by its name with {0}, or resumes it if on is false; both are idempotent. No
// claim that begins after Suspend has returned starts a task of a suspended queue. Running tasks go on. A queue that is suspended by
// itself stays so when its family is resumed, and the other way round.
func (q *Queue) Suspend(ctx context.Context, name string, on bool) error {
	changed, err := q.rules.Suspend(ctx, name, on)
	if err != nil || on || !changed {
		return err
	}
	return q.notifyLines(ctx, name)
}

// notifyLines notifies claimers of tasks that may be ready in a queue.
func (q *Queue) notifyLines(ctx context.Context, name string) error {
	lines, err := q.linesOf(ctx, name)
	if err != nil {
		return err
	}
	for _, l := range lines {
		q.notify(ctx, slices.Repeat([]notifier.Notice{l.Notice()}, mostNotices))
	}
	return nil
}

// linesOf returns the lines of a queue, or of all queues of a family.
func (q *Queue) linesOf(ctx context.Context, name string) ([]layout.Line, error) {
	all, err := q.known.Lines(ctx)
	if err != nil {
		return nil, err
	}
	means, err := q.meant(ctx, name)
	if err != nil {
		return nil, err
	}
	var lines []layout.Line
	for _, l := range all {
		if means(l.Queue) {
			lines = append(lines, l)
		}
	}
	return lines, nil
}

// InUse reports whether tasks wait in a queue, or in one of a family by its name with {0}, or did a while ago.
func (q *Queue) InUse(ctx context.Context, name string) (bool, error) {
	lines, err := q.linesOf(ctx, name)
	return len(lines) > 0, err
}

// meant returns a function that reports whether a queue has the name, or is a member of the family of that name.
func (q *Queue) meant(ctx context.Context, name string) (means func(queue string) bool, err error) {
	set, err := q.definitions.Current(ctx)
	return func(queue string) bool {
		family, _ := set.FamilyOf(queue)
		return queue == name || family == name
	}, err
}

// suspended returns a function that reports whether a queue is suspended, by itself or with its family.
func (q *Queue) suspended(ctx context.Context) (is func(queue string) bool, err error) {
	rules, err := q.rules.InForce(ctx)
	if err != nil || len(rules.Suspended) == 0 {
		return func(string) bool { return false }, err
	}
	set, err := q.definitions.Current(ctx)
	return func(queue string) bool { return !rules.SuspendedSince(set, queue).IsZero() }, err
}
