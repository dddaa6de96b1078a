package queue

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// addition is one Enqueue under way, or the part of one that goes in one write.
type addition struct {
	q     *Queue
	once  *Once
	tasks []adding
	set   *definition.Set

	asked     []task.Task   // the tasks as the request alone makes them; only if once is given
	note      *journal.Note // which keeps the result of once; nil without
	replayed  bool
	places    []*layout.Place // the entry of each task; nil if none is written
	fallbacks []*layout.Place // the fallback entries of those that are kept for an instance
}

// adding is one task of an addition.
type adding struct {
	task     task.Task
	line     layout.Line
	prefix   string
	fixed    bool   // the request gives the id: a task with this id is the same task
	again    bool   // it does another task again
	value    []byte // of its item
	cause    event.Cause
	payload  json.RawMessage
	existing bool
	existed  bool // of a replay: existing was true in the first result
	same     int  // index of an earlier one of this request with the same unique key; -1: none
	held     bool // the unique key's item is there, with this version, but its holder has ended
	version  int64
	guard    store.Op // see guardHolder
}

func (q *Queue) addition(set *definition.Set, once *Once, tasks []adding) *addition {
	a := &addition{q: q, once: once, set: set, tasks: tasks}
	unique := map[[2]string]int{}
	for i := range a.tasks {
		t := &a.tasks[i]
		if !t.claims() {
			continue
		}
		key := [2]string{t.task.Job, t.task.Unique}
		if first, twice := unique[key]; twice {
			t.same = first
		} else {
			unique[key] = i
		}
	}
	if once != nil {
		a.note = journal.NoteAt(layout.OnceKey(once))
		a.asked = make([]task.Task, 0, len(a.tasks))
		for i := range a.tasks {
			a.asked = append(a.asked, a.tasks[i].task)
		}
	}
	return a
}

// adding returns the adding of one task of a request.
func (q *Queue) adding(set *definition.Set, n *New) (adding, error) {
	if n.Job == "" || n.Job[0] != '/' {
		return adding{}, fmt.Errorf("%w: job %q, want a path that begins with /", ErrInvalid, n.Job)
	}
	if err := checkPayload(n.Payload); err != nil {
		return adding{}, err
	}
	if n.Attempts < -1 {
		return adding{}, fmt.Errorf("%w: attempts %d, want at least 1, or -1 for endless", ErrInvalid, n.Attempts)
	}
	job, declared := set.JobOf(n.Job)
	if !declared {
		job.Path = n.Job
	}
	created := q.created()
	t := task.Task{
		Dialect: n.Dialect, Job: n.Job, Group: cmp.Or(n.Group, layout.TopicGroup(n.Job)), Queue: cmp.Or(n.Queue, job.Queue, definition.MainQueue),
		State: task.Ready, Priority: n.Priority, Created: created,
		Attempts: cmp.Or(n.Attempts, job.Attempts, 1), RetryDelay: cmp.Or(n.RetryDelay, job.RetryDelay),
		Thrown: cmp.Or(n.Thrown, task.OnThrown(job.OnError)), Fairness: n.Fairness, Unique: n.Unique,
		Concurrency: n.Concurrency, Prefer: n.Prefer, Modifier: n.Modifier, Trace: n.Trace, Payload: n.Payload, Schedule: n.Schedule, Late: n.Late,
		Order: n.Order,
	}
	if n.Same != "" {
		t.ID = n.ID()
	} else if t.ID = n.Given; t.ID == "" {
		t.ID = q.newID(set, n.Prefix, &t, layout.LineOf(t.Queue, job, declared))
	}
	n.delay(&t)
	if n.UniqueWindow > 0 {
		t.UniqueUntil = created + n.UniqueWindow.Microseconds()
	}
	if n.Missing {
		t.State, t.Finished = task.Missing, created
	}
	a := adding{task: t, prefix: n.Prefix, cause: event.CausedBy(n.Cause), fixed: n.Same != "", again: n.again, line: layout.LineOf(t.Queue, job, declared), same: -1}
	if len(n.Payload) > inline {
		a.payload = n.Payload
		a.task.Payload, a.task.Apart = nil, len(n.Payload)
	}
	a.value = layout.Encode(&a.task)
	return a, n.checkTexts(len(a.value) - len(a.task.Payload))
}

// delay lets a new task wait for the time that was asked for. One that is past is kept only where it names the task, or where it is shown: of
// an event.
func (n *New) delay(t *task.Task) {
	at := n.NotBefore.UnixMicro()
	later := at > t.Created
	if later || n.Late && !n.Turns { // which takes its unique key as it falls due, though that be now
		t.State = task.Waiting
	}
	if later || n.Same != "" || n.Dialect == task.Event && !n.NotBefore.IsZero() {
		t.NotBefore = at
	}
}

// newID returns an id for a task that waits in a line.
func (q *Queue) newID(set *definition.Set, prefix string, t *task.Task, l layout.Line) task.ID {
	id := task.NewID(prefix, t.ListedUnder(), t.Created, q.random())
	if _, write := q.parts.of(l); write > 1 && q.parts.may(set.QueueOf(t.Queue), l) {
		return task.SpreadID(id)
	}
	return id
}

// size returns the most bytes that the task takes of a write: its entry is smaller than its item.
func (t *adding) size() int { return len(t.payload) + 2*len(t.value) }

// prepare returns the tasks' events and operations; after a conflict it first reads what has caused it.
func (a *addition) prepare(ctx context.Context, lost *store.Conflict) (journal.Change, error) {
	if err := a.resolve(ctx, lost); err != nil {
		return journal.Change{}, err
	}
	if a.once != nil && !a.replayed {
		if err := a.fetch(ctx); err != nil {
			return journal.Change{}, err
		}
	}
	var c journal.Change
	for i := range a.tasks {
		if t := &a.tasks[i]; t.fresh() {
			first := len(c.Events)
			c.Events = append(c.Events, added(&t.task))
			if t.task.State == task.Missing {
				c.Events = append(c.Events, closed(&t.task))
			}
			causedBy(t.cause, c.Events[first:]...)
		}
	}
	if len(c.Events) == 0 {
		if a.once != nil && !a.replayed {
			if err := a.remember(ctx); err != nil {
				return c, err
			}
		}
		return c, errNothing
	}
	if err := a.locate(ctx); err != nil {
		return c, err
	}
	c.Ops = a.ops
	return c, nil
}

func (a *addition) bounds() (ops, bytes int) {
	ops = a.hints()
	if a.once != nil {
		ops++
	}
	if a.mayKeepOld() {
		bytes = maxWhole
	}
	for i := range a.tasks {
		t := &a.tasks[i]
		ops += 2
		if t.payload != nil {
			ops++
		}
		if t.claims() {
			ops += 2
		}
		bytes += t.size()
		if t.again {
			bytes += t.size() // in the note
		}
	}
	return ops, bytes
}

// private returns true if the tasks take no keys and have no given ids: then no other write can concern them.
func (a *addition) private() bool { return len(a.touches()) == 0 }

// touches names the unique keys, the idempotency key, and the ids that are given.
func (a *addition) touches() []string {
	var names []string
	for i := range a.tasks {
		t := &a.tasks[i]
		if t.claims() && t.same < 0 {
			names = append(names, layout.UniqueKey(t.task.Job, t.task.Unique).Partition)
		}
		if t.fixed {
			names = append(names, t.task.ID.UUID())
		}
	}
	if a.note != nil {
		names = append(names, a.note.Key().Partition)
	}
	return names
}

// claims reports whether the task takes a unique key when it is created. A missing one takes none: it never runs.
func (t *adding) claims() bool {
	return t.task.Unique != "" && !t.task.Late && t.task.State != task.Missing
}

// fresh reports whether the task is new and to be written.
func (t *adding) fresh() bool { return !t.existing && t.same < 0 }

// locate makes the entries and their keys, queue by queue.
func (a *addition) locate(ctx context.Context) error {
	a.places, a.fallbacks = make([]*layout.Place, len(a.tasks)), nil
	byQueue := map[string][]int{}
	for i := range a.tasks {
		t := &a.tasks[i]
		if t.fresh() && t.task.ID.Spread() {
			if err := a.q.parts.spread(ctx, t.task.ID.Group()); err != nil {
				return err
			}
		}
		if !t.fresh() || t.task.State == task.Missing {
			continue
		}
		p := &layout.Place{Entry: layout.EntryOf(&t.task, t.line)}
		a.places[i] = p
		if t.task.State == task.Waiting {
			p.At = layout.DueKey(t.task.NotBefore, p.UUID)
		} else {
			byQueue[t.task.Queue] = append(byQueue[t.task.Queue], i)
		}
	}
	for _, name := range sortedKeys(byQueue) {
		list := byQueue[name]
		entries := make([]layout.Entry, len(list))
		for n, i := range list {
			entries[n] = a.places[i].Entry
			if err := a.q.known.Register(ctx, a.tasks[i].line); err != nil {
				return err
			}
		}
		c := a.set.QueueOf(name)
		ranks, err := a.q.ranks(ctx, c, entries)
		if err != nil {
			return err
		}
		for n, i := range list {
			l := a.tasks[i].line
			if err := a.q.parts.prepare(ctx, c, l, 1); err != nil {
				return err
			}
			a.places[i].At = a.q.parts.key(c, l, ranks[n], a.places[i].UUID)
		}
	}
	return a.keep(ctx)
}

// keep reserves ready entries for the instances that their tasks prefer, as many as the write has space for.
func (a *addition) keep(ctx context.Context) error {
	o, most := a.q.offers(a.set), a.hints()
	for i, p := range a.places {
		if p == nil || p.At.Partition == layout.PartitionDue || len(a.fallbacks) == most {
			continue
		}
		kept, fallback, err := o.offer(ctx, &p.Entry, p.At.Sort)
		if err != nil {
			return err
		}
		if kept != nil {
			a.places[i], a.fallbacks = kept, append(a.fallbacks, fallback)
		}
	}
	return nil
}

// hints returns how many of the tasks may be kept for instances at most: the write has no space for more fallback entries.
func (a *addition) hints() (n int) {
	for i := range a.tasks {
		if a.tasks[i].task.Prefer != "" {
			n++
		}
	}
	return min(n, max(0, combineOps-4*len(a.tasks)-1))
}

// ops returns the operations of all tasks, and of the idempotency key.
func (a *addition) ops(r journal.Receipt) []store.Op {
	ops := make([]store.Op, 0, 3*len(a.tasks)+2) // the journal adds the slot
	if a.note != nil {
		ops = append(ops, a.note.Put(a.result(), a.q.now()))
	}
	for i := range a.tasks {
		t := &a.tasks[i]
		if !t.fresh() {
			continue
		}
		uuid := t.task.ID.UUID()
		cond := store.Absent
		if !t.fixed {
			cond = a.q.strategy.idCondition()
		}
		ops = append(ops, store.Put(store.Item{Key: layout.TaskKey(uuid), Value: t.value}, cond))
		if t.payload != nil {
			ops = append(ops, store.Put(store.Item{Key: layout.PayloadKey(uuid), Value: t.payload}, store.Always))
		}
		if t.claims() {
			cond := store.Absent
			if t.held {
				cond = store.VersionIs(t.version)
			}
			ops = append(ops, store.Put(store.Item{Key: layout.UniqueKey(t.task.Job, t.task.Unique), Value: []byte(t.task.ID)}, cond))
			if t.held && t.guard.Kind != 0 {
				ops = append(ops, t.guard)
			}
		}
		if p := a.places[i]; p != nil {
			ops = append(ops, p.PutFor(r))
		}
	}
	for _, p := range a.fallbacks {
		ops = append(ops, p.PutFor(r))
	}
	return ops
}

// resolve finds out what exists already. It reads the holders of unique keys before the first write, since requests for a task
// that is under way are usual and a failed write costs more than a read; other conflicts show when a write fails.
func (a *addition) resolve(ctx context.Context, lost *store.Conflict) error {
	if lost != nil {
		var noted *store.Item
		for _, failure := range lost.Failed {
			switch {
			case failure.Found == nil:
			case a.note != nil && failure.Found.Key == a.note.Key():
				noted = failure.Found
			default:
				a.rename(failure.Found.Key)
			}
		}
		if a.note != nil && a.note.Stands(noted, a.q.now()) {
			return a.replay(ctx, noted)
		}
	}
	return a.lookUp(ctx)
}

// rename gives a task whose id is taken another id, unless the request gives the id.
func (a *addition) rename(key store.Key) {
	for i := range a.tasks {
		if t := &a.tasks[i]; t.fresh() && !t.fixed && key == layout.TaskKey(t.task.ID.UUID()) {
			t.task.ID = a.q.newID(a.set, t.prefix, &t.task, t.line)
			t.value = layout.Encode(&t.task)
		}
	}
}

// lookUp reads the holders of the requested unique keys, and the tasks with given ids.
func (a *addition) lookUp(ctx context.Context) error {
	var keys []store.Key
	var of []*adding
	for i := range a.tasks {
		t := &a.tasks[i]
		switch {
		case !t.fresh():
		case t.fixed:
			keys, of = append(keys, layout.TaskKey(t.task.ID.UUID())), append(of, t)
		case t.claims():
			keys, of = append(keys, layout.UniqueKey(t.task.Job, t.task.Unique)), append(of, t)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	items, err := a.q.store.Get(ctx, keys...)
	if err != nil {
		return layout.Failure("look up a unique key", err)
	}
	for i, item := range items {
		of[i].held = false
		if item == nil {
			continue
		}
		if err := of[i].meet(ctx, a.q, item); err != nil {
			return err
		}
	}
	return nil
}

// meet takes the task with the given id, or the holder of the unique key if that is still in force, as the result.
func (t *adding) meet(ctx context.Context, q *Queue, found *store.Item) error {
	if t.fixed {
		t.existing, t.task = true, task.Task{} // decoding would write into the caller's payload
		return layout.Decode(found, &t.task)
	}
	holder, seen, err := layout.LoadTask(ctx, q.store, task.ID(found.Value).UUID())
	if err != nil && !errors.Is(err, ErrNoTask) {
		return err
	}
	if err == nil && (!holder.State.Final() || holder.UniqueUntil > q.micro()) {
		t.task, t.existing = holder, true
		return nil
	}
	t.held, t.version, t.guard = true, found.Version, guardHolder(found, seen)
	return nil
}

// guardHolder returns a check for the case that the holder of a unique key is absent, or older than the key's item: the write that
// made both may not be wholly visible yet. The check demands the holder with version seen, or its absence if seen is 0, and
// fails while such a write is under way. In other cases the operation is of kind 0.
func guardHolder(key *store.Item, seen int64) store.Op {
	if seen >= key.Version {
		return store.Op{}
	}
	cond := store.Absent
	if seen > 0 {
		cond = store.VersionIs(seen)
	}
	return store.Check(layout.TaskKey(task.ID(key.Value).UUID()), cond)
}

func (a *addition) answer() Enqueued {
	e := Enqueued{Replayed: a.replayed, Tasks: make([]Added, len(a.tasks))}
	for i := range a.tasks {
		t := &a.tasks[i]
		e.Tasks[i] = Added{Task: t.task, Existing: t.existing}
		if a.replayed {
			e.Tasks[i].Existing = t.existed
		} else if t.same >= 0 {
			e.Tasks[i] = Added{Task: a.tasks[t.same].task, Existing: true}
		} else if t.payload != nil {
			e.Tasks[i].Task.Payload = t.payload
		}
	}
	return e
}
