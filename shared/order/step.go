package order

import (
	"context"
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// Ended returns what the end of a step brings about ([queue.Steps]): nothing, if it is not the step that the order is in. Race: the
// items of a write may become visible one by one, so that a step may end before its order can be read as it is. Then the check fails.
func (e *Engine) Ended(ctx context.Context, t *task.Task, r queue.Result, _ *store.Conflict) (queue.Follow, error) {
	key := orderKey(t.Order.Path())
	m, err := e.moveOf(ctx, t.Order.Path())
	switch {
	case errors.Is(err, ErrNoOrder):
		return queue.Follow{Ops: []store.Op{store.Check(key, store.Absent)}}, nil
	case err != nil:
		return queue.Follow{}, err
	case m.order.Task != t.ID:
		return queue.Follow{Ops: []store.Op{store.Check(key, m.cond)}}, nil
	}
	if err := m.stepEnded(ctx, t, r); err != nil {
		return queue.Follow{}, asRefusal(err)
	}
	return m.write(), nil
}

// asRefusal makes the queue tell an invalid result as such.
func asRefusal(err error) error {
	switch {
	case errors.Is(err, ErrTooLarge):
		return errors.Join(queue.ErrTooLarge, err)
	case errors.Is(err, ErrInvalid):
		return errors.Join(queue.ErrInvalid, err)
	}
	return err
}

// stepEnded changes the order at the end of its step.
func (m *move) stepEnded(ctx context.Context, t *task.Task, r queue.Result) error {
	o := m.order
	n, err := m.nodeAt(t.Order.Node)
	if err != nil {
		return err
	}
	merged, changed, err := merge(o.Variables, r.Variables)
	if err != nil {
		return err
	}
	o.Variables, o.Task = merged, ""
	if o.Started == 0 {
		o.Started = t.Started
	}
	job, _ := m.set.JobOf(n.Job)
	d := decide(ended{
		node: n, job: job, last: m.isLast(n, n.Next), setbacks: o.Setbacks, failed: t.State != task.Succeeded, code: r.Code,
	})
	says := typed.OrderStepEnded{Transition: d.transition}
	if changed {
		says.Variables = jsontext.Value(o.variables())
	}
	m.say(event.OrderStepEnded, says)
	if err := m.giveBack(ctx); err != nil {
		return err
	}
	if o.Then != nil {
		return m.then(ctx)
	}
	return m.apply(ctx, n, d)
}

// apply does what was decided at the end of a step at a node.
func (m *move) apply(ctx context.Context, n *definition.GraphNode, d decision) error {
	o := m.order
	o.Setbacks, o.SetBack = d.setbacks, d.setBack
	switch {
	case d.setBack:
		o.At = m.now + max(d.delay, n.Delay).Microseconds()
		m.say(event.OrderSetBack, typed.OrderSetBack{NodeID: n.ID, Until: when(o.At), Count: d.setbacks})
		return m.enter(ctx, n)
	case d.suspended && m.failsFor(n):
		return m.fail(ctx)
	case d.suspended:
		if o.At = m.after(n.Delay, false); !o.Suspended {
			m.suspend()
		}
		return nil
	case d.next == "":
		return m.finish(ctx)
	default:
		return m.goTo(ctx, d.next)
	}
}
