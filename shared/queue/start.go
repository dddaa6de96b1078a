package queue

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// start is one task that the claim starts.
type start struct {
	place    layout.Place
	task     task.Task
	before   int64 // the task's version
	version  int64 // afterwards
	lease    layout.Lease
	deadline time.Time
	token    string
	value    []byte          // of its item
	payload  json.RawMessage // where it is kept apart
	unique   []store.Op      // take the unique key at the start; none if it takes none
}

func (c *claim) bounds() (ops, bytes int) {
	for i := range c.picks {
		ops += c.opsOf(&c.picks[i])
	}
	if c.by.Beside != nil {
		ops++
	}
	return min(ops, c.q.maxOps), max(c.size, 1500*min(len(c.picks), c.want))
}

// private returns true if everything that prepare reads is this claim's alone: picked tasks are, unless they are removed, and slots
// that no other claim contests. Slots of concurrency keys and unique keys are not.
func (c *claim) private() bool { return len(c.view.contested()) == 0 && c.takesItsOwn() }

// takesItsOwn reports whether the starts take no slots of concurrency keys, nor unique keys.
func (c *claim) takesItsOwn() bool {
	return !slices.ContainsFunc(c.picks, func(p layout.Place) bool { return p.Limit > 0 || p.Late != "" })
}

// opsOf returns the most operations that the start of a pick has.
func (c *claim) opsOf(p *layout.Place) int {
	ops := 1
	if !c.later {
		ops++
	}
	if c.at != nil {
		ops++
	}
	if c.queue.MaxParallel > 0 {
		ops++
	}
	if c.queue.Type == definition.Ordered {
		ops++
	}
	if p.Limit > 0 {
		ops++
	}
	if p.Late != "" {
		ops += 2
	}
	return ops + len(p.OtherEntry())
}

// touches names the picked tasks, and the limits and unique keys that their starts take.
func (c *claim) touches() []string {
	names := c.view.contested()
	if c.at != nil && len(names) == 0 {
		names = append(names, c.at.Limit) // tasks may be started for the instance while it claims
	}
	for i := range c.picks {
		names = append(names, c.picks[i].UUID)
		if p := &c.picks[i]; p.Limit > 0 {
			names = append(names, layout.KeyLimit(p.Key))
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
	if err := c.checkBeside(ctx, lost); err != nil {
		return journal.Change{}, err
	}
	if lost != nil && c.queue.Type == definition.Ordered {
		return journal.Change{}, errNothing // another may be the first now
	}
	if err := c.readSlots(ctx); err != nil {
		return journal.Change{}, err
	}
	items, err := c.readTasks(ctx, lost)
	if err != nil {
		return journal.Change{}, err
	}
	if c.at.repeats() {
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
	change, steps := journal.Change{Events: make([]event.Event, len(c.starts)), Ops: c.ops}, false
	for i := range c.starts {
		change.Events[i] = startedEvent(&c.starts[i].task)
		change.Events[i].Cause = event.CausedAt(c.starts[i].before)
		steps = steps || c.starts[i].task.Order != nil
	}
	if steps {
		change.Events = c.withSteps(change.Events)
	}
	return change, nil
}

// prepareAnew forgets what an earlier preparation found.
func (c *claim) prepareAnew(ctx context.Context, lost *store.Conflict) {
	if lost != nil || len(c.starts) > 0 { // the slots that an earlier preparation took are marked in what it has read
		c.at.forget()
	}
	c.verdicts = verdicts{starts: slices.Grow(c.starts[:0], min(len(c.picks), c.want))}
	c.release(ctx)
	if lost != nil {
		c.q.limits.Forget()
	}
	c.conflict = c.conflict || lost != nil
}

// readTasks returns the items of the picks' tasks. What was read ahead is used once: after a conflict, it may be gone.
func (c *claim) readTasks(ctx context.Context, lost *store.Conflict) ([]*store.Item, error) {
	if lost != nil {
		c.ahead = nil
	}
	items, keys := make([]*store.Item, len(c.picks)), make([]store.Key, 0, len(c.picks))
	for i := range c.picks {
		if a := c.ahead[c.picks[i].UUID]; a != nil {
			items[i] = a.task
		} else if items[i] = c.known(&c.picks[i], lost); items[i] == nil {
			keys = append(keys, layout.TaskKey(c.picks[i].UUID))
		}
	}
	if len(keys) == 0 {
		return items, nil
	}
	found, err := c.q.store.Get(ctx, keys...)
	if err != nil {
		return nil, layout.Failure("read tasks", err)
	}
	for i := range c.picks {
		if items[i] == nil && c.ahead[c.picks[i].UUID] == nil {
			items[i], found = found[0], found[1:]
		}
	}
	return items, nil
}

// known returns the item of the task of an entry, if it was read before the claim or this process has just added it; otherwise nil.
func (c *claim) known(p *layout.Place, lost *store.Conflict) *store.Item {
	if lost != nil {
		return nil
	}
	if item := c.by.Early.task(p); item != nil {
		return item
	}
	return c.q.added.take(p)
}

// fetchPayloads reads the payloads that are items of their own, before their tasks are started: a start counts as an attempt.
func (c *claim) fetchPayloads(ctx context.Context) error {
	var of []*start
	var uuids []string
	for i := range c.starts {
		s := &c.starts[i]
		if a := c.ahead[s.lease.UUID]; a != nil {
			s.payload = a.payload
		}
		if s.task.Apart > 0 && s.payload == nil {
			of, uuids = append(of, s), append(uuids, s.task.ID.UUID())
		}
	}
	if len(of) == 0 {
		return nil
	}
	payloads, err := layout.LoadPayloads(ctx, c.q.store, uuids)
	if err != nil {
		return err
	}
	for i, s := range of {
		s.payload = payloads[i]
	}
	return nil
}

func (c *claim) ops(r journal.Receipt) []store.Op {
	ops := make([]store.Op, 0, 3*len(c.starts)+2) // the journal adds the slot
	for i := range c.starts {
		s := &c.starts[i]
		s.version = r.Position
		ops = append(ops,
			store.Put(store.Item{Key: layout.TaskKey(s.lease.UUID), Value: s.value}, store.VersionIs(s.before)),
		)
		if !c.later {
			ops = append(ops, store.Delete(s.place.At, store.Always))
		}
		ops = append(ops, s.place.OtherEntry()...)
		ops = append(ops, s.unique...)
		for i := range s.lease.Slots {
			ops = append(ops, s.lease.Slots[i].Take())
		}
	}
	if c.queue.Type == definition.Ordered {
		ops = append(ops, c.view.countStart()...)
	}
	return c.withBeside(ops)
}

// leased returns the lease of a task that is started.
func (s *start) leased() Lease {
	l := Lease{Token: s.token, Task: s.task, Expires: time.UnixMicro(s.lease.Expires), Length: s.lease.Length, Deadline: s.deadline}
	if s.task.Apart > 0 {
		l.Task.Payload = s.payload
	}
	return l
}

// started returns the leases after a write that has ended with err.
func (c *claim) started(ctx context.Context, err error) ([]Lease, error) {
	if err != nil {
		c.release(ctx)
		if errors.Is(err, errNothing) {
			return nil, nil
		}
		c.verdicts = verdicts{}
		return nil, err
	}
	leases := make([]Lease, len(c.starts))
	for i := range c.starts {
		s := &c.starts[i]
		leases[i] = s.leased()
		c.q.limits.Took(s.lease.Slots)
		c.q.leases.keep(s)
		c.q.wakeForLease(s.lease.Expires)
	}
	if c.later {
		entries := make([]layout.Place, len(c.starts))
		for i := range c.starts {
			entries[i] = c.starts[i].place
		}
		c.q.strategy.remove(ctx, entries)
	}
	if c.by.Beside != nil {
		c.by.Beside.Written()
	}
	c.at.begin()
	c.slots.Release()
	if c.queue.Type == definition.RoundRobin {
		last := c.starts[len(c.starts)-1].place.At.Sort
		_ = c.q.turns.Started(ctx, c.queue.Name, layout.Unstamp(last)) // a hint; the next start writes it again
	}
	return leases, nil
}

func startedEvent(t *task.Task) event.Event {
	return typed.TaskStarted{Attempt: t.Attempt, Instance: t.Instance}.Event(keyOf(t))
}
