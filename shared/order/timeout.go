package order

import (
	"context"
	"errors"

	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/task"
)

// An order of a chain with a timeout has an alarm for when that will be over at the earliest; who hears it finds out when its first
// step really began, and sets another if that was later. The time-out itself is an error at the node where the order is: its step
// is asked to stop, and what comes after it has no limit. The time of a suspended order is over when it is resumed.

// watch sets the first alarm of a new order whose chain has a timeout.
func (m *move) watch() {
	if m.graph.Timeout > 0 && m.order.Parent == "" {
		m.ringAt(max(m.now, m.order.At) + m.graph.Timeout.Microseconds())
	}
}

// ringAt sets the alarm of the timeout.
func (m *move) ringAt(at int64) {
	m.order.RingsAt = at
	m.alarm(at)
}

// timedOut ends the order's time, if that is over, or sets the next alarm.
func (m *move) timedOut(ctx context.Context) (changed bool, err error) {
	o := m.order
	if o.Suspended || !m.rings() {
		return false, nil
	}
	d, _, err := m.e.stored(ctx, o)
	if err != nil {
		return false, err
	}
	began := o.started(d)
	if began == 0 {
		began = max(m.now, o.At) // not yet
	}
	if end := began + m.graph.Timeout.Microseconds(); end > m.now {
		m.ringAt(end)
		return true, nil
	}
	o.RingsAt = 0
	running, err := m.withdraw(ctx)
	if err != nil {
		return false, err
	}
	if running {
		o.Then = &Then{Fail: true}
		return true, nil
	}
	return true, m.failHere(ctx)
}

// rings reports whether the alarm of the timeout has come.
func (m *move) rings() bool { return m.order.RingsAt != 0 && m.order.RingsAt <= m.now }

// failHere lets the order go on as after an error at its node.
func (m *move) failHere(ctx context.Context) error {
	n, err := m.node()
	if err != nil {
		return err
	}
	waited := m.order.Waiting != ""
	if err := m.stopWaiting(ctx); err != nil {
		return err
	}
	if n.Error != "" {
		return m.goTo(ctx, n.Error)
	}
	if !m.order.Suspended {
		m.suspend()
	}
	if waited {
		m.sayItIsOver()
	}
	return nil
}

// stopTimedOut asks the running step of an order whose time is over to stop. What it misses the step's own timeout ends.
func (e *Engine) stopTimedOut(ctx context.Context, path string) error {
	o, _, err := e.read(ctx, path)
	switch {
	case errors.Is(err, ErrNoOrder):
		return nil
	case err != nil || o.Then == nil || !o.Then.Fail || o.Task == "":
		return err
	}
	return e.stop(ctx, o.Task)
}

// stop asks a step to stop, unless it has ended.
func (e *Engine) stop(ctx context.Context, step task.ID) error {
	_, err := e.queue.Stop(ctx, step)
	if errors.Is(err, queue.ErrFinished) || errors.Is(err, queue.ErrNoTask) {
		return nil
	}
	return err
}
