package queue

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/notifier"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
)

// A suspended queue is an item in the partition of the rules, so that a claim reads both at once. No entry is moved: claims skip the
// queue's lines. The item of a family of queues counts for all its members, also later ones. Tasks of a queue start while neither
// the queue nor its family is suspended.

// suspendedRoot begins the paths of suspended queues' items; the path of a job begins with a slash.
const suspendedRoot = "queue:"

// Suspend suspends a queue, or a family of queues by its name with {0}, or resumes it if on is false; both are idempotent. No
// claim that begins after Suspend has returned starts a task of a suspended queue. Running tasks go on. A queue that is suspended by
// itself stays so when its family is resumed, and the other way round.
func (q *Queue) Suspend(ctx context.Context, name string, on bool) error {
	key := layout.RuleKey(suspendedRoot + name)
	_, err := q.journal.Write(ctx, func(ctx context.Context, _ *store.Conflict) (journal.Change, error) {
		items, err := q.store.Get(ctx, key)
		if err != nil {
			return journal.Change{}, layout.Failure("read whether a queue is suspended", err)
		}
		if (items[0] != nil) == on {
			return journal.Change{}, errNothing
		}
		if on {
			since := layout.Encode(Rules{Path: suspendedRoot + name, Pause: q.now().UTC()})
			return turned("QueueSuspended", name, store.Put(store.Item{Key: key, Value: since}, store.Absent)), nil
		}
		return turned("QueueResumed", name, store.Delete(key, store.VersionIs(items[0].Version))), nil
	})
	q.strategy.rulesChanged()
	if errors.Is(err, errNothing) {
		return nil
	}
	if err != nil || on {
		return layout.Failure("suspend a queue", err)
	}
	return q.notifyLines(ctx, name)
}

func turned(kind, queue string, op store.Op) journal.Change {
	return journal.Change{
		Events: []event.Event{{Type: kind, Key: event.Key{Path: "Queue:/" + queue}}},
		Ops:    func(journal.Receipt) []store.Op { return []store.Op{op} },
	}
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
	all, err := q.lines(ctx)
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

// meant returns a function that reports whether a queue has the name, or is a member of the family of that name.
func (q *Queue) meant(ctx context.Context, name string) (means func(queue string) bool, err error) {
	set, err := q.definitions.Current(ctx)
	return func(queue string) bool {
		family, _ := set.FamilyOf(queue)
		return queue == name || family == name
	}, err
}

// Suspended returns since when queues and families of queues are suspended, by name.
func (q *Queue) Suspended(ctx context.Context) (map[string]time.Time, error) {
	rules, err := q.strategy.rules(ctx)
	if err != nil {
		return nil, err
	}
	return maps.Clone(rules.suspended), nil
}

// suspended returns a function that reports whether a queue is suspended, by itself or with its family.
func (q *Queue) suspended(ctx context.Context) (is func(queue string) bool, err error) {
	rules, err := q.strategy.rules(ctx)
	if err != nil || len(rules.suspended) == 0 {
		return func(string) bool { return false }, err
	}
	set, err := q.definitions.Current(ctx)
	return func(queue string) bool { return !rules.suspendedSince(set, queue).IsZero() }, err
}

// suspendedSince returns when a queue was suspended, by itself or with its family; zero if it is not.
func (s *ruleSet) suspendedSince(set *definition.Set, queue string) time.Time {
	if since := s.suspended[queue]; !since.IsZero() {
		return since
	}
	if family, ok := set.FamilyOf(queue); ok {
		return s.suspended[family]
	}
	return time.Time{}
}

// going returns the lines of queues that are not suspended.
func (s *ruleSet) going(set *definition.Set, lines []layout.Line) []layout.Line {
	if len(s.suspended) == 0 {
		return lines
	}
	var going []layout.Line
	for _, l := range lines {
		if s.suspendedSince(set, l.Queue).IsZero() {
			going = append(going, l)
		}
	}
	return going
}
