package queue

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// staleEntry is an entry whose task is no longer queued with the version that the entry was made for.
type staleEntry struct {
	place
	task *store.Item // as it was read; nil: there is none
	gone bool        // the entry or the task has changed meanwhile: it is not removed
}

// start is one task that the claim starts.
type start struct {
	place   place
	task    task.Task
	before  int64 // the task's version
	version int64 // afterwards
	lease   lease
	token   string
	values  struct{ task, lease []byte } // of their items
	payload json.RawMessage              // where it is kept apart
	unique  store.Op                     // takes the unique key at the start; of kind 0 if none is taken
	guard   store.Op                     // see guardHolder; of kind 0 if there is nothing to guard
}

func (c *claim) bounds() (ops, bytes int) {
	for i := range c.picks {
		ops += c.opsOf(&c.picks[i])
	}
	return min(ops, combineOps), 1500 * min(len(c.picks), c.want)
}

// private returns true if everything that prepare reads is this claim's alone: picked tasks are, unless they are removed; so are
// an instance's slots if the store has one process, since its claims come one by one, and reserved slots of a queue. Slots of
// other limits and unique keys are not.
func (c *claim) private() bool {
	return (c.permits.at == nil || c.q.store.Exclusive()) && (c.queue.MaxParallel == 0 || c.reserves()) &&
		!slices.ContainsFunc(c.picks, func(p place) bool { return p.Limit > 0 || p.Late != "" })
}

// opsOf returns the most operations that the start of a pick has.
func (c *claim) opsOf(p *place) int {
	ops := 3
	if c.permits.at != nil {
		ops++
	}
	if c.queue.MaxParallel > 0 {
		ops++
	}
	if c.takesOrder() {
		ops++
	}
	if p.Limit > 0 {
		ops++
	}
	if p.Late != "" {
		ops += 2
	}
	return ops + len(p.twin())
}

// touches names the picked tasks, and the limits and unique keys that their starts take.
func (c *claim) touches() []string {
	var names []string
	if c.permits.at != nil {
		names = append(names, c.permits.at.what)
	}
	if c.queue.MaxParallel > 0 && !c.reserves() {
		names = append(names, queueLimit(c.queue.Name))
	}
	for i := range c.picks {
		names = append(names, c.picks[i].UUID)
		if p := &c.picks[i]; p.Limit > 0 {
			names = append(names, keyLimit(p.Key))
		}
		if p := &c.picks[i]; p.Late != "" {
			names = append(names, p.Late)
		}
	}
	return names
}

// prepare reads the picks' tasks and decides which of them start.
func (c *claim) prepare(ctx context.Context, lost *store.Conflict) (journal.Change, error) {
	c.prepareAnew(ctx, lost)
	if lost != nil && c.queue.Type == definition.Ordered {
		return journal.Change{}, errNothing // another may be the first now
	}
	if err := c.permits.read(ctx, c.q, &c.queue); err != nil {
		return journal.Change{}, err
	}
	keys := make([]store.Key, len(c.picks))
	for i := range c.picks {
		keys[i] = taskKey(c.picks[i].UUID)
	}
	items, err := c.q.store.Get(ctx, keys...)
	if err != nil {
		return journal.Change{}, unavailable("read tasks", err)
	}
	if c.permits.at.repeats() {
		c.left, c.full = c.picks, true
		return journal.Change{}, errNothing // the same claim was made elsewhere meanwhile
	}
	if err := c.q.mayDecide(ctx); err != nil { // the clock may have jumped since the claim began
		return journal.Change{}, err
	}
	if err := c.judgeAll(ctx, items); err != nil {
		return journal.Change{}, err
	}
	if err := c.fetchPayloads(ctx); err != nil {
		return journal.Change{}, err
	}
	change := journal.Change{Events: make([]event.Event, len(c.starts)), Ops: c.ops}
	for i := range c.starts {
		change.Events[i] = startedEvent(&c.starts[i].task)
	}
	return change, nil
}

// prepareAnew forgets what an earlier preparation found.
func (c *claim) prepareAnew(ctx context.Context, lost *store.Conflict) {
	if lost != nil || len(c.starts) > 0 { // the slots that an earlier preparation took are marked in what it has read
		c.permits.at.forget()
	}
	c.starts, c.stale, c.held, c.left, c.ends, c.full, c.load = c.starts[:0], nil, nil, nil, nil, false, 0
	c.strays = nil
	c.unreserve(ctx)
	if lost != nil {
		c.conflict = true
		c.q.permits.forget()
	}
}

// judgeAll decides about all picks. The error is [errNothing] if none can be started.
func (c *claim) judgeAll(ctx context.Context, items []*store.Item) error {
	now := c.q.micro()
	for i := range c.picks {
		if err := c.judge(ctx, c.picks[i], items[i], now); err != nil {
			return err
		}
	}
	if len(c.starts) == 0 {
		return errNothing
	}
	return nil
}

// fetchPayloads reads the payloads that are items of their own, before their tasks are started: a start counts as an attempt.
func (c *claim) fetchPayloads(ctx context.Context) (err error) {
	for i := range c.starts {
		s := &c.starts[i]
		if s.task.Apart == 0 {
			continue
		}
		if s.payload, err = c.q.payload(ctx, s.task.ID.UUID()); err != nil {
			return err
		}
	}
	return nil
}

// judge decides about one pick.
func (c *claim) judge(ctx context.Context, p place, item *store.Item, now int64) error {
	if item == nil || item.Version != p.Of {
		c.stale = append(c.stale, &staleEntry{place: p, task: item})
		c.conflict = c.conflict || item == nil || item.Version < p.Of // perhaps its write is not wholly visible yet
		return nil
	}
	var t task.Task
	if err := decode(item, &t); err != nil {
		return err
	}
	if !t.State.Queued() {
		c.stale = append(c.stale, &staleEntry{place: p, task: item})
		return nil
	}
	if c.full || len(c.starts) == c.want || c.load+c.opsOf(&p) > combineOps {
		c.left = append(c.left, p)
		return nil
	}
	return c.judgeQueued(ctx, p, &t, item.Version, now)
}

// judgeQueued decides about a pick whose task is queued.
func (c *claim) judgeQueued(ctx context.Context, p place, t *task.Task, version, now int64) error {
	line, job, declared, err := c.homeOf(ctx, &p, t)
	if err != nil {
		return err
	}
	switch {
	case c.rules.holds(t.Job):
		c.held = append(c.held, holding{p, ruleHold(t.Job), c.rules[t.Job].key()})
	case p.NotBefore > now: // in an ordered queue nothing overtakes it
		c.left, c.full = append(c.left, p), true
	case line != p.home() && !declared && t.Dialect != task.Job:
		c.finish(t, version, task.Miss, "its job is no longer declared")
	case line != p.home():
		c.strays = append(c.strays, stray{p, line})
	case t.Late && t.Attempt == 0:
		return c.admitLate(ctx, p, t, version, job, now)
	default:
		return c.admit(ctx, p, t, version, job, now)
	}
	return nil
}

// finish notes a task that ends without being started.
func (c *claim) finish(t *task.Task, version int64, step task.Step, why string) {
	c.ends = append(c.ends, &finishing{q: c.q, task: *t, version: version, step: step, why: why})
}

// admitLate starts a task that takes its unique key only now, and drops it if another task holds the key.
func (c *claim) admitLate(ctx context.Context, p place, t *task.Task, version int64, job definition.Job, now int64) error {
	key := uniqueKey(t.Job, t.Unique)
	items, err := c.q.store.Get(ctx, key)
	if err != nil {
		return unavailable("look up a unique key", err)
	}
	cond, guard := store.Absent, store.Op{}
	if items[0] != nil {
		holder, seen, err := c.q.load(ctx, task.ID(items[0].Value).UUID())
		if err != nil && !errors.Is(err, ErrNoTask) {
			return err
		}
		if err == nil && !holder.State.Final() || c.takes(key) {
			c.finish(t, version, task.Drop, "another one was under way: "+string(items[0].Value))
			return nil
		}
		cond, guard = store.VersionIs(items[0].Version), guardHolder(items[0], seen)
	}
	if c.takes(key) {
		c.left = append(c.left, p)
		return nil
	}
	before := len(c.starts)
	if err := c.admit(ctx, p, t, version, job, now); err != nil {
		return err
	}
	if len(c.starts) > before {
		c.starts[before].unique = store.Put(store.Item{Key: key, Value: []byte(t.ID)}, cond)
		c.starts[before].guard = guard
	}
	return nil
}

// takes reports whether a start of this claim takes key.
func (c *claim) takes(key store.Key) bool {
	for i := range c.starts {
		if c.starts[i].unique.Item.Key == key {
			return true
		}
	}
	return false
}

// admit starts a task if the limits allow it.
func (c *claim) admit(ctx context.Context, p place, t *task.Task, version int64, job definition.Job, now int64) error {
	if t.Concurrency != nil {
		if err := c.permits.readOne(ctx, c.q, keyLimit(t.Concurrency.Key)); err != nil {
			return err
		}
	}
	permits, missing := c.permits.take(&c.queue, t.Concurrency)
	switch missing {
	case limitQueue, limitInstance:
		c.left, c.full = append(c.left, p), true
		return nil
	case limitKey:
		if t.Concurrency.Skip {
			c.finish(t, version, task.Drop, "the one before was still running")
			return nil
		}
		c.occupied(t.Concurrency.Key)
		c.held = append(c.held, holding{place: p, hold: limitHold(t.Concurrency.Key)})
		return nil
	}
	s := start{place: p, task: *t, before: version, token: c.q.newToken(p.UUID, t.Attempt+1)}
	for i := range permits {
		permits[i].holder = c.permits.at.holder(&permits[i], s.token)
	}
	s.task.State, _ = t.State.After(task.Start) // the state is a queued one
	s.task.Attempt++
	s.task.Started, s.task.Instance, s.task.Lease, s.task.Message = now, c.by.Instance, s.token, ""
	s.lease = lease{
		UUID: p.UUID, Job: t.Job, Line: p.home(), Instance: c.by.Instance, Length: job.Lease,
		Expires: now + job.Lease.Microseconds(), Permits: permits,
	}
	s.values.task, s.values.lease = encode(&s.task), encode(&s.lease)
	c.starts = append(c.starts, s)
	c.load += c.opsOf(&p)
	return nil
}

func (c *claim) ops(r journal.Receipt) []store.Op {
	ops := make([]store.Op, 0, 4*len(c.starts)+1)
	for i := range c.starts {
		s := &c.starts[i]
		s.version = r.Position
		ops = append(ops,
			store.Put(store.Item{Key: taskKey(s.lease.UUID), Value: s.values.task}, store.VersionIs(s.before)),
			store.Delete(s.place.key, store.Always),
			store.Put(store.Item{Key: leaseKey(s.token), Version: 1, Value: s.values.lease}, store.Always),
		)
		ops = append(ops, s.place.twin()...)
		for _, op := range []store.Op{s.unique, s.guard} {
			if op.Kind != 0 {
				ops = append(ops, op)
			}
		}
		for _, permit := range s.lease.Permits {
			ops = append(ops, store.Put(store.Item{Key: permit.key(), Value: []byte(permit.holder)}, store.Absent))
		}
	}
	if c.takesOrder() && len(c.starts) > 0 {
		cond := store.Absent
		if c.order > 0 {
			cond = store.VersionIs(c.order)
		}
		ops = append(ops, store.Put(store.Item{Key: orderKey(c.queue.Name)}, cond))
	}
	return ops
}

func startedEvent(t *task.Task) event.Event {
	return typed.TaskStarted{Attempt: t.Attempt, Instance: t.Instance}.Event(keyOf(t))
}
