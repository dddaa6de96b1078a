package simulation

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// moment is one state of a task as it was committed.
type moment struct {
	at      time.Time
	version int64
	task    task.Task
}

// ledger is a store between the network and the real one; it checks every commit of a task.
type ledger struct {
	store.Store
	report func(invariant, format string, args ...any)
	count  func(what string)
	times  timekeeper

	mu    sync.Mutex
	items map[store.Key]store.Item // of the table Work, as they are now
	tasks map[string][]moment      // by UUID
	order []string                 // UUIDs as they were first committed
}

func newLedger(base store.Store, r *engineRun) *ledger {
	return &ledger{Store: base, report: r.report, count: r.count, times: timekeeper{r, map[string]time.Time{}}, items: map[store.Key]store.Item{}, tasks: map[string][]moment{}}
}

// Write records what the Write did.
func (l *ledger) Write(ctx context.Context, w store.Write) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := distaste(w); err != nil {
		return err
	}
	if err := l.Store.Write(ctx, w); err != nil {
		return err
	}
	changed := false
	for _, op := range w.Ops {
		if op.Item.Key.Table == store.Work && op.Kind != store.OpCheck {
			changed = l.look(ctx, op.Item.Key) || changed
		}
	}
	if changed {
		l.checkLimits()
		l.checkPlaces()
		l.checkUnique()
		l.checkFirst(&w)
	}
	return nil
}

// look records an item as it is now, and reports whether a task has changed; a repeated request may have changed nothing.
func (l *ledger) look(ctx context.Context, key store.Key) (isTask bool) {
	found, err := l.Store.Get(ctx, key)
	if err != nil {
		return false
	}
	if found[0] == nil {
		delete(l.items, key)
		return false
	}
	before, was := l.items[key]
	l.items[key] = *found[0]
	if strings.HasPrefix(key.Partition, "lease/") {
		l.times.lease(key.Sort, expiryOf(found[0]))
	}
	if !strings.HasPrefix(key.Partition, "task/") || was && before.Version == found[0].Version {
		return false
	}
	var t layout.Started
	if err := layout.Decode(found[0], &t); err != nil {
		l.report("task is its events", "task %s cannot be read: %v", key.Sort, err)
	}
	if given, runs := t.AsGiven(); runs {
		l.times.lease(t.Lease, time.UnixMicro(given.Expires))
	}
	l.step(key.Sort, moment{time.Now(), found[0].Version, t.Task})
	return true
}

// step checks one change of a task against the table of its life.
func (l *ledger) step(uuid string, now moment) {
	history := l.tasks[uuid]
	l.tasks[uuid] = append(history, now)
	if len(history) == 0 {
		l.order = append(l.order, uuid)
		if handedOver(&now.task) {
			l.count("handed over")
		} else if !now.task.State.Queued() || now.task.Attempt != 0 {
			l.report("task is its events", "task %s begins as %s", uuid, now.task.State)
		}
		return
	}
	was := history[len(history)-1]
	l.times.step(&was.task, &now.task)
	switch from, to := &was.task, &now.task; {
	case now.version <= was.version:
		l.report("fence", "task %s went from position %d back to %d", uuid, was.version, now.version)
	case from.State.Final():
		l.report("once", "task %s was %s and is %s", uuid, from.State, to.State)
	case to.State == task.Running && (!from.State.Queued() || to.Attempt != from.Attempt+1):
		l.report("lease", "task %s was started from %s, attempt %d after %d", uuid, from.State, to.Attempt, from.Attempt)
	case to.State.Queued() && from.State.Queued():
		l.report("task is its events", "task %s was changed while it was queued", uuid)
	case to.Attempts > 0 && to.Attempt > to.Attempts:
		l.report("attempts", "task %s was started %d times, %d are allowed", uuid, to.Attempt, to.Attempts)
	}
}

// handedOver reports whether a task that is new was started by the write that added it.
func handedOver(t *task.Task) bool { return t.State == task.Running && t.Attempt == 1 }

// checkFirst demands that no task is left that came before one that was started by the write that added both.
func (l *ledger) checkFirst(w *store.Write) {
	var started, left []*task.Task
	for _, op := range w.Ops {
		if history := l.tasks[op.Item.Key.Sort]; op.Kind == store.OpPut && strings.HasPrefix(op.Item.Key.Partition, "task/") && len(history) == 1 {
			if t := &history[0].task; handedOver(t) {
				started = append(started, t)
			} else if t.State == task.Ready {
				left = append(left, t)
			}
		}
	}
	for _, t := range started {
		for _, other := range left {
			if other.Job == t.Job && other.Priority > t.Priority {
				l.report("order", "task %s was started when it was added, and not the more urgent %s", t.ID, other.ID)
			}
		}
	}
}

func (l *ledger) now(uuid string) *moment {
	history := l.tasks[uuid]
	return &history[len(history)-1]
}

// checkUnique demands that no unique key is held twice.
func (l *ledger) checkUnique() {
	holders := map[string]string{}
	for _, uuid := range l.order {
		t := &l.now(uuid).task
		if !t.HoldsUnique() || t.State.Final() {
			continue
		}
		if other := holders[t.Unique]; other != "" {
			l.report("unique", "tasks %s and %s both hold the key %s", other, uuid, t.Unique)
		}
		holders[t.Unique] = uuid
	}
}

// queuedThrough reports whether a task was queued without a break between two moments.
func (l *ledger) queuedThrough(uuid string, from, to time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	queued := false
	for _, m := range l.tasks[uuid] {
		switch {
		case !m.at.After(from):
			queued = m.task.State.Queued() && m.task.NotBefore == 0
		case !m.at.After(to):
			return false
		}
	}
	return queued
}

// unfinished returns the tasks that have not ended.
func (l *ledger) unfinished() []task.Task {
	l.mu.Lock()
	defer l.mu.Unlock()
	var tasks []task.Task
	for _, uuid := range l.order {
		if t := l.now(uuid).task; !t.State.Final() {
			tasks = append(tasks, t)
		}
	}
	return tasks
}

// remains returns the keys of items that exist only for unfinished tasks.
func (l *ledger) remains() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var keys []string
	for key := range l.items {
		kind, _, _ := strings.Cut(key.Partition, "/")
		if kind, _, _ = strings.Cut(kind, "."); layout.IsSignpost(&store.Item{Key: key}) {
			continue // where a line lies in several parts
		}
		if slices.Contains([]string{"ready", "due", "held", "lease", "permit", "unique"}, kind) {
			keys = append(keys, key.Partition+" "+key.Sort)
		}
	}
	slices.Sort(keys)
	return keys
}
