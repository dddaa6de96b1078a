package queue

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
)

// ruleItem holds the rules of a path as they are stored.
type ruleItem struct {
	Rules
	version int64
}

// ruleSet holds what says which waiting tasks may be started, and by whom. It is one partition of the store, so that a claim reads
// all of it at once.
type ruleSet struct {
	jobs      map[string]*ruleItem  // pauses and blocks, by the job's path
	suspended map[string]time.Time  // since when queues and families of queues are suspended, by name
	kept      map[layout.Line]int64 // lines that are kept for instances, with the versions of their markers
}

// holds reports whether a rule keeps tasks of a job from being started.
func (s *ruleSet) holds(path string) bool { return s.jobs[path] != nil }

// readRules reads the rules in force. The paths of their items tell the kinds apart.
func (q *Queue) readRules(ctx context.Context) (*ruleSet, error) {
	set := &ruleSet{jobs: map[string]*ruleItem{}, suspended: map[string]time.Time{}, kept: map[layout.Line]int64{}}
	for item, err := range store.All(ctx, q.store, store.Range{Table: store.Work, Partition: layout.PartitionRules}) {
		if err != nil {
			return nil, layout.Failure("read the rules", err)
		}
		rule := &ruleItem{version: item.Version}
		if err := layout.Decode(item, &rule.Rules); err != nil {
			return nil, err
		}
		if name, ok := strings.CutPrefix(rule.Path, suspendedRoot); ok {
			set.suspended[name] = rule.Pause
		} else if text, ok := strings.CutPrefix(rule.Path, preferRoot); ok {
			set.kept[layout.ParseLine(text)] = rule.version
		} else {
			set.jobs[rule.Path] = rule
		}
	}
	return set, nil
}

// SetRule sets a rule of a job's path, or removes it if on is false; both are idempotent. No claim that begins after SetRule has
// returned starts a task that the rule holds. Removing the last rule releases the held tasks, in order. A task of an ordered queue
// leaves its place while it is held: those behind it may start until it is released.
func (q *Queue) SetRule(ctx context.Context, path string, kind RuleKind, on bool) error {
	lifted := false
	err := q.commit(ctx, func(ctx context.Context, _ *store.Conflict) (journal.Change, error) {
		items, err := q.store.Get(ctx, layout.RuleKey(path))
		if err != nil {
			return journal.Change{}, layout.Failure("read a rule", err)
		}
		rules, cond := Rules{Path: path}, store.Absent
		if items[0] != nil {
			cond = store.VersionIs(items[0].Version)
			if err := layout.Decode(items[0], &rules); err != nil {
				return journal.Change{}, err
			}
		}
		if lifted = false; !rules.set(kind, on, q.now().UTC()) {
			return journal.Change{}, errNothing
		}
		lifted = rules.State() == "run"
		return journal.Change{
			Events: []event.Event{typed.JobStateChanged{State: rules.State()}.Event(rules.Path)},
			Ops: func(journal.Receipt) []store.Op {
				if lifted {
					return []store.Op{store.Delete(layout.RuleKey(path), cond)}
				}
				return []store.Op{store.Put(store.Item{Key: layout.RuleKey(path), Value: layout.Encode(rules)}, cond)}
			},
		}, nil
	})
	q.strategy.rulesChanged()
	if err != nil || !lifted {
		return err
	}
	_, err = q.release(ctx, ruleHold(path), releaseAtOnce)
	return errors.Join(err, q.notifyUnheld(ctx, path))
}

// notifyUnheld notifies claimers of tasks of a job that no claim has moved while the rule was in force, in the job's present queue.
func (q *Queue) notifyUnheld(ctx context.Context, path string) error {
	set, err := q.definitions.Current(ctx)
	if err != nil {
		return err
	}
	job, _ := set.JobOf(path)
	l, _, _ := layout.HomeOf(set, cmp.Or(job.Queue, definition.MainQueue), path)
	notices, err := q.noticesReady(ctx, l)
	q.notify(ctx, notices)
	return err
}

// releaseAtOnce is how many tasks SetRule releases at most before it returns; the sweep releases the rest.
const releaseAtOnce = 10_000

// set changes the rules, and reports whether they were different.
func (r *Rules) set(kind RuleKind, on bool, now time.Time) (changed bool) {
	at := &r.Pause
	if kind == Block {
		at = &r.Block
	}
	if on == !at.IsZero() {
		return false
	}
	*at = time.Time{}
	if on {
		*at = now
	}
	return true
}

// Rules returns the rules in force whose path begins with prefix, sorted by path. Job paths begin with /.
func (q *Queue) Rules(ctx context.Context, prefix string) ([]Rules, error) {
	set, err := q.strategy.rules(ctx)
	if err != nil {
		return nil, err
	}
	var found []Rules
	for _, path := range sortedKeys(set.jobs) {
		if strings.HasPrefix(path, prefix) {
			found = append(found, set.jobs[path].Rules)
		}
	}
	return found, nil
}
