package queue

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/notifier"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/task"
)

const (
	// MaxEnqueue is how many tasks one Enqueue may add at most.
	MaxEnqueue = 1000

	// MaxBatch is how many tasks one write to the store can hold, whatever the tasks need.
	MaxBatch = 24

	// inline is the size in bytes up to which a payload is part of its task's item, which each change of the task writes again.
	inline = 600
)

// Enqueue adds 1 to [MaxEnqueue] tasks: up to [MaxBatch] all or none; more, or more than [layout.MaxTogether] bytes with their payloads,
// in several writes, so that some may have been added after an error. An invalid task is an error before anything is added. If
// once is not nil, the tasks are added once for all calls with the same key, and later calls return the first result and complete
// what an error left out. Then [layout.MaxTogether] bounds what each write takes, and the error is [ErrTooLarge] if that does not do.
func (q *Queue) Enqueue(ctx context.Context, once *Once, news ...New) (Enqueued, error) {
	set, err := q.definitions.Current(ctx)
	if err != nil {
		return Enqueued{}, err
	}
	if slices.ContainsFunc(news, func(n New) bool { return !n.NotBefore.IsZero() }) {
		if err := q.compareClock(ctx); err != nil {
			if _, invalid := q.additions(set, once, news); invalid != nil { // invalid whatever the time is
				return Enqueued{}, invalid
			}
			return Enqueued{}, err
		}
	}
	additions, err := q.additions(set, once, news)
	if err != nil {
		return Enqueued{}, err
	}
	all := Enqueued{Replayed: true}
	for _, turn := range turns(once, additions) {
		if err := q.add(ctx, turn, &all); err != nil {
			return Enqueued{}, err
		}
	}
	return all, nil
}

// add writes additions side by side, and appends their results to all.
func (q *Queue) add(ctx context.Context, additions []*addition, all *Enqueued) (failed error) {
	parts := make([]part, len(additions))
	for i, a := range additions {
		if parts[i] = a; len(additions) == 1 {
			if h := q.handOver(ctx, a); h != nil {
				parts[i] = h
				defer q.waiters.free(h.to, h.line) // if the write panics
			}
		}
	}
	for i, err := range q.write(ctx, parts...) {
		a := additions[i]
		if h, is := parts[i].(*handover); is {
			h.handedOver(ctx, err)
		}
		switch {
		case errors.Is(err, errNothing): // all tasks exist already
		case err != nil:
			q.doubtIf(err)
			failed = cmp.Or(failed, err)
			continue
		default:
			a.keepItems()
			q.announce(ctx, append(a.places, a.fallbacks...))
		}
		some := a.answer()
		all.Tasks, all.Replayed = joinedTo(all.Tasks, some.Tasks), all.Replayed && some.Replayed
	}
	return failed
}

// joinedTo returns both lists as one: the second one itself if the first is empty, since most requests take one write.
func joinedTo[T any](all, more []T) []T {
	if len(all) == 0 {
		return more
	}
	return append(all, more...)
}

// errNothing ends a write that has nothing to do.
var errNothing = errors.New("queue: nothing to write")

// announce notifies claimers of entries that were stored, and adds these to what this process keeps in memory.
func (q *Queue) announce(ctx context.Context, places []*layout.Place) {
	notices := make([]notifier.Notice, 0, len(places))
	for _, p := range places {
		if p == nil {
			continue
		}
		if notice, needed := q.strategy.stored(p); needed {
			notices = append(notices, notice)
		}
		if p.At.Partition != layout.PartitionDue {
			q.known.Confirm(ctx, p.Line())
			q.parts.confirm(ctx, p)
		}
	}
	q.notify(ctx, notices)
}

// added returns the event of a new task. A time that was past already has kept it from nothing, so that it waits from its creation.
func added(t *task.Task) event.Event {
	e := typed.TaskAdded{Queue: t.Queue, Priority: t.Priority}
	if t.NotBefore > t.Created {
		e.NotBefore = t.NotBefore
	}
	return e.Event(keyOf(t))
}

func keyOf(t *task.Task) event.Key { return event.Key{Path: t.Job, TaskID: string(t.ID)} }
