package queue

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// Steps knows what the end of an order's step brings about. Its methods may be called concurrently.
type Steps interface {
	// Ended returns what belongs in the write that ends a step. The task is as it is written, with its final state; the outcome of
	// the result is [typed.Dropped] for a task that was removed, stopped or missed before it was started. Ended is called again when
	// what it has read has changed meanwhile, see [journal.Prepare]. After an error nothing is written.
	Ended(ctx context.Context, t *task.Task, r Result, lost *store.Conflict) (Follow, error)
}

// Follow is what else belongs in the write that ends a step, or is a write of its own ([Queue.Change]).
type Follow struct {
	Names    []string      // of the items of Ops, but for the order's path: no two parts of one write have one in common
	Before   []event.Event // before those of the task that ends
	After    []event.Event // after them
	Ops      []store.Op    // on the caller's items
	Withdraw []Stored      // tasks that end unstarted, or are absent and stay so; their events follow After
	Add      []New         // tasks; their events come last. They have no unique keys and no Same

	// Written is called once, when all that is written; nil: nothing.
	Written func(ctx context.Context)

	Stamped []Stamp // more operations on the caller's items
}

// Stamp returns an operation that holds ids of the events with which it is written.
type Stamp func(journal.Receipt) store.Op

// Stored is a task as it was read, for a change that rests on it.
type Stored struct {
	Task    task.Task
	Absent  bool // there is none with the id; the write that adds it may be under way
	version int64
}

// Stored reads a task.
func (q *Queue) Stored(ctx context.Context, id task.ID) (Stored, error) {
	t, version, err := layout.LoadTask(ctx, q.store, id.UUID())
	if errors.Is(err, ErrNoTask) {
		return Stored{Task: task.Task{ID: id}, Absent: true}, nil
	}
	return Stored{Task: t, version: version}, err
}

// NewID returns an id for the task of a request, see [New].
func (q *Queue) NewID(n *New) task.ID {
	return task.NewID(n.Prefix, n.listedUnder(), q.created(), q.random())
}

// Change writes what prepare returns, all or nothing; it may share a write with other changes. Names are those of the items that
// prepare's operations are on; an order's is its path. Prepare is called again when what it has read has changed meanwhile, a withdrawn task too; its
// errors end the change. What it returns may be empty: then nothing is written.
func (q *Queue) Change(ctx context.Context, names []string, prepare func(ctx context.Context, lost *store.Conflict) (Follow, error)) error {
	return q.change(ctx, &callersChange{q: q, names: names, ask: prepare})
}

// MaxChange is the most operations that a change may have in a write of its own: an added task takes up to 3, a withdrawn one up to 4.
const MaxChange = combineOps

// ChangeAlone is Change in a write of its own, of up to [MaxChange] operations.
func (q *Queue) ChangeAlone(ctx context.Context, prepare func(ctx context.Context, lost *store.Conflict) (Follow, error)) error {
	return q.change(ctx, &callersChange{q: q, alone: true, ask: prepare})
}

func (q *Queue) change(ctx context.Context, c *callersChange) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	err := q.write(ctx, c)[0]
	if errors.Is(err, errNothing) {
		return nil
	}
	q.doubtIf(err)
	if err == nil {
		c.more.announce(ctx)
	}
	return err
}

// callersChange is the part of a write that [Queue.Change] makes.
type callersChange struct {
	q     *Queue
	names []string
	alone bool // no other part shares its write
	ask   func(ctx context.Context, lost *store.Conflict) (Follow, error)
	more  *following
}

func (c *callersChange) prepare(ctx context.Context, lost *store.Conflict) (journal.Change, error) {
	f, err := c.ask(ctx, lost)
	if err != nil {
		return journal.Change{}, err
	}
	if c.more, err = c.q.following(ctx, f); err != nil {
		return journal.Change{}, err
	}
	change := journal.Change{Events: c.more.around(nil), Ops: c.more.ops}
	if len(change.Events) == 0 && len(f.Ops)+len(f.Stamped) == 0 {
		return change, errNothing
	}
	return change, nil
}

func (c *callersChange) bounds() (ops, bytes int) {
	if c.alone {
		return combineOps, combineBytes
	}
	return 2 * stepOps, stepBytes
}

func (c *callersChange) touches() []string { return c.names }

// private returns false: others may change an order while the part waits.
func (c *callersChange) private() bool { return false }

// What a change of an order takes of a write at most, where it is not known yet.
const (
	stepOps   = 8
	stepBytes = 300 << 10
)

// following is a Follow that goes in a write. A nil one is empty.
type following struct {
	q     *Queue
	f     Follow
	added *addition // nil: no task is added
	evs   []event.Event
}

// following prepares the tasks of a Follow.
func (q *Queue) following(ctx context.Context, f Follow) (*following, error) {
	w := &following{q: q, f: f}
	for i := range f.Withdraw {
		if t := &f.Withdraw[i]; !t.Absent {
			w.evs = append(w.evs, causedAt(t.version, q.withdrawn(&t.Task)...)...)
		}
	}
	if len(f.Add) == 0 {
		return w, nil
	}
	set, err := q.definitions.Current(ctx)
	if err != nil {
		return nil, err
	}
	if err := q.compareClock(ctx); err != nil {
		return nil, err
	}
	tasks := make([]adding, len(f.Add))
	for i := range f.Add {
		if tasks[i], err = q.adding(set, &f.Add[i]); err != nil {
			return nil, err
		}
	}
	w.added = q.addition(set, nil, tasks)
	change, err := w.added.prepare(ctx, nil)
	w.evs = append(w.evs, change.Events...)
	return w, err
}

// withdrawn ends a queued task unstarted, and returns its events.
func (q *Queue) withdrawn(t *task.Task) []event.Event {
	t.State, _ = t.State.After(task.Drop) // every queued state has it
	t.Finished = q.micro()
	if t.Attempt > 0 {
		return append(finished(t, task.Drop), removed(t))
	}
	return []event.Event{closed(t), forgotten(t)}
}

// around returns the events of a write in which those of the task that ends are own.
func (w *following) around(own []event.Event) []event.Event {
	if w == nil {
		return own
	}
	return inTurn(slices.Concat(w.f.Before, own, w.f.After, w.evs), w.orders())
}

// orders returns the keys of the orders whose steps are added, by the keys of the steps' tasks.
func (w *following) orders() map[event.Key]event.Key {
	if w.added == nil {
		return nil
	}
	all := make(map[event.Key]event.Key, len(w.added.tasks))
	for i := range w.added.tasks {
		if t := &w.added.tasks[i].task; t.Order != nil {
			all[keyOf(t)] = event.Key{Path: t.Order.Path()}
		}
	}
	return all
}

func (w *following) ops(r journal.Receipt) []store.Op {
	if w == nil {
		return nil
	}
	ops := slices.Clone(w.f.Ops)
	for _, op := range w.f.Stamped {
		ops = append(ops, op(r))
	}
	for i := range w.f.Withdraw {
		t, version := &w.f.Withdraw[i].Task, w.f.Withdraw[i].version
		if w.f.Withdraw[i].Absent {
			// Race: the items of a write may become visible one by one. The check fails while the one that adds the task is under way.
			ops = append(ops, store.Check(layout.TaskKey(t.ID.UUID()), store.Absent))
			continue
		}
		ops = append(ops, layout.Conclude(t, t.Attempt == 0, store.VersionIs(version))...)
		if t.NotBefore > 0 {
			ops = append(ops, layout.Remove(layout.DueKey(t.NotBefore, t.ID.UUID()), layout.EntryVersion(version))) // a claim removes one that is elsewhere
		}
	}
	if w.added != nil {
		ops = append(ops, w.added.ops(r)...)
	}
	return ops
}

func (w *following) bounds() (ops, bytes int) {
	if w == nil {
		return 0, 0
	}
	ops, bytes = len(w.f.Ops)+len(w.f.Stamped)+len(w.f.Withdraw)*(layout.MaxConclude+1), 0
	for i := range w.f.Ops {
		bytes += len(w.f.Ops[i].Item.Value)
	}
	if w.added != nil {
		o, b := w.added.bounds()
		ops, bytes = ops+o, bytes+b
	}
	return ops, bytes
}

// touches appends the names of the items that the end of a task changes to names.
func (w *following) touches(t *task.Task, names []string) []string {
	if t.Order != nil {
		names = append(names, t.Order.Path())
	}
	if w != nil {
		names = append(names, w.f.Names...)
	}
	return names
}

// announce notifies claimers of the tasks that were added, and of those that may have waited behind withdrawn ones.
func (w *following) announce(ctx context.Context) {
	if w == nil {
		return
	}
	if w.f.Written != nil {
		w.f.Written(ctx)
	}
	if w.added != nil {
		w.q.announce(ctx, append(w.added.places, w.added.fallbacks...))
	}
	for i := range w.f.Withdraw {
		if !w.f.Withdraw[i].Absent {
			w.q.notifyBehind(ctx, &w.f.Withdraw[i].Task)
		}
	}
}

// stepGone is stepEnded of a task that did not end by a result.
func (q *Queue) stepGone(ctx context.Context, t *task.Task, lost *store.Conflict, own []event.Event) (*following, []event.Event, error) {
	return q.stepEnded(ctx, t, Result{Outcome: typed.Dropped, Message: cmp.Or(t.Message, "its task is "+string(t.State))}, lost, own)
}

// stepEnded returns what the end of a step brings about, and all events of the write.
func (q *Queue) stepEnded(ctx context.Context, t *task.Task, r Result, lost *store.Conflict, own []event.Event) (*following, []event.Event, error) {
	if q.steps == nil {
		return nil, own, nil
	}
	f, err := q.steps.Ended(ctx, t, r, lost)
	if err != nil {
		return nil, nil, err
	}
	if t.Attempt == 1 && len(f.Before) > 0 {
		f.Before[0].Cause = own[0].Cause // the step began where the task did
	}
	w, err := q.following(ctx, f)
	if err != nil {
		return nil, nil, err
	}
	return w, w.around(own), nil
}

// withSteps returns the events of starts with those of the orders whose steps begin. Further attempts of a step are its task's
// only.
func (c *claim) withSteps(starts []event.Event) []event.Event {
	all := make([]event.Event, 0, 2*len(starts)+1)
	for i := range starts {
		all = append(all, starts[i])
		t := &c.starts[i].task
		if t.Order == nil || !t.Begins() {
			continue
		}
		step := typed.OrderEvent("OrderStepStarted", t.Order.Path(), typed.OrderStepStarted{NodeID: t.Order.Node, TaskID: string(t.ID)})
		step.Cause = event.CausedAt(c.starts[i].before) // the order came to the node by the write that added the task
		if t.Order.First {
			begins := typed.OrderEvent("OrderStarted", t.Order.Path(), typed.OrderStarted{})
			begins.Cause, step.Cause = step.Cause, event.CausedBefore(1)
			all = append(all, begins)
		}
		all = append(all, step)
	}
	return all
}
