package queue

import (
	"context"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// verdicts is what a claim has decided about its picks.
type verdicts struct {
	starts    []start
	stale     []*staleEntry
	held      []holding // that a rule or a limit holds
	misplaced []misplaced
	left      []layout.Place // not tried: enough are started, the limit of the queue is reached, or their time has not come
	ends      []*finishing   // tasks that end without being started
	full      bool           // a limit is reached that concerns all picks
	load      int            // operations of the starts
	size      int            // bytes of their items
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

// judge decides about one pick.
func (c *claim) judge(ctx context.Context, p layout.Place, item *store.Item, now int64) error {
	if item == nil || item.Version != p.Of {
		c.stale = append(c.stale, &staleEntry{Place: p, task: item})
		c.conflict = c.conflict || item == nil || item.Version < p.Of // perhaps its write is not wholly visible yet
		return nil
	}
	var t task.Task
	if err := layout.Decode(item, &t); err != nil {
		return err
	}
	if !t.State.Queued() {
		c.stale = append(c.stale, &staleEntry{Place: p, task: item})
		return nil
	}
	if c.full || len(c.starts) == c.want || c.load+c.opsOf(&p) > c.q.maxOps || c.size >= combineBytes {
		c.left = append(c.left, p)
		return nil
	}
	return c.judgeQueued(ctx, p, &t, item.Version, now)
}

// judgeQueued decides about a pick whose task is queued.
func (c *claim) judgeQueued(ctx context.Context, p layout.Place, t *task.Task, version, now int64) error {
	home, job, declared, err := c.homeOf(ctx, &p, t)
	if err != nil {
		return err
	}
	switch {
	case c.rules.Holds(t.Job):
		c.held = append(c.held, holding{p, ruleHold(t.Job), c.rules.Jobs[t.Job]})
	case p.NotBefore > now: // in an ordered queue nothing overtakes it
		c.left, c.full = append(c.left, p), true
		c.q.strategy.delayed(p.Line(), p.NotBefore)
	case !declared && mayMiss(t):
		c.finish(t, version, task.Miss, undeclared)
	case home != p.Home():
		c.misplaced = append(c.misplaced, misplaced{p, home})
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

// admitLate starts a task that takes its unique key no earlier than its time comes, and drops it if another task holds the key.
func (c *claim) admitLate(ctx context.Context, p layout.Place, t *task.Task, version int64, job definition.Job, now int64) error {
	k, err := c.q.lookUpKey(ctx, t)
	switch {
	case err != nil:
		return err
	case k.holder == t.ID: // since it has fallen due
		return c.admit(ctx, p, t, version, job, now)
	case k.holder != "":
		c.finish(t, version, task.Drop, underWay(k.holder))
		return nil
	case c.takes(k.at):
		c.left = append(c.left, p)
		return nil
	}
	before := len(c.starts)
	if err := c.admit(ctx, p, t, version, job, now); err != nil {
		return err
	}
	if len(c.starts) > before {
		c.starts[before].unique = k.take(t.ID)
	}
	return nil
}

// takes reports whether a start of this claim takes key.
func (c *claim) takes(key store.Key) bool {
	for i := range c.starts {
		if unique := c.starts[i].unique; len(unique) > 0 && unique[0].Item.Key == key {
			return true
		}
	}
	return false
}

// admit starts a task if the limits allow it.
func (c *claim) admit(ctx context.Context, p layout.Place, t *task.Task, version int64, job definition.Job, now int64) error {
	slots, missing, err := c.takeSlots(ctx, t.Concurrency)
	switch {
	case err != nil:
		return err
	case missing == "":
	case t.Concurrency == nil || missing != layout.KeyLimit(t.Concurrency.Key):
		c.left, c.full = append(c.left, p), true
		return nil
	default:
		if t.Concurrency.Skip {
			c.finish(t, version, task.Drop, "the one before was still running")
			return nil
		}
		c.view.keyFull(t.Concurrency.Key)
		c.held = append(c.held, holding{Place: p, hold: limitHold(t.Concurrency.Key)})
		return nil
	}
	s := start{place: p, task: *t, before: version, token: c.q.newToken(p.UUID, t.Attempt+1)}
	for i := range slots {
		slots[i].Holder = s.token
	}
	s.task.State, _ = t.State.After(task.Start) // the state is a queued one
	s.task.Attempt++
	s.task.Started, s.task.Instance, s.task.Lease, s.task.Message = now, c.by.Instance, s.token, ""
	s.task.Order = t.Order.Begin(now)
	s.lease = layout.Lease{
		UUID: p.UUID, Job: t.Job, Line: p.Home().String(), Instance: c.by.Instance, Length: job.Lease,
		Expires: c.by.endOf(now + job.Lease.Microseconds()), Slots: slots,
	}
	s.deadline = deadline(&s.task, &job)
	s.value = layout.StartedAs(&s.task, &s.lease)
	c.starts = append(c.starts, s)
	c.load, c.size = c.load+c.opsOf(&p), c.size+len(s.value)
	return nil
}
