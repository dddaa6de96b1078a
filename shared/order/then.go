package order

import (
	"context"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// withdraw takes back the task of the order's step if it waits to run, and reports whether it runs: then the order is at its node
// until the step ends. A step that waits for another attempt is broken off, unless something is to happen at its end. Race: a claim
// that starts it meanwhile changes the task, and the write conflicts.
func (m *move) withdraw(ctx context.Context) (running bool, err error) {
	o := m.order
	if o.Task == "" {
		return false, nil
	}
	stored, state, err := m.e.stepOf(ctx, o)
	switch {
	case err != nil:
		return false, err
	case state == stepRuns, state == stepWaits && o.Then != nil:
		return true, nil
	case state == stepWaits || stored.Absent:
		m.follow.Withdraw = append(m.follow.Withdraw, stored)
		m.breakOff(&stored.Task)
	}
	o.Task = ""
	return false, m.giveBack(ctx)
}

// breakOff ends a step that has begun, and waited for another attempt.
func (m *move) breakOff(t *task.Task) {
	if t.Attempt == 0 {
		return
	}
	if m.order.Started == 0 {
		m.order.Started = t.Started
	}
	m.order.At, m.order.SetBack = 0, false // it has begun, so that its time is past
	m.say(event.OrderStepEnded, typed.OrderStepEnded{Transition: typed.NodeTransition{Type: typed.Keep}})
}

// replace lets the new order of a move take the place of the one before: at once, or, if its step runs, at the step's end. It
// returns the move that is to be written.
func (m *move) replace(ctx context.Context, before *Order, cond store.Condition) (*move, error) {
	old := &move{
		e: m.e, set: m.set, graph: m.graph, order: before, cond: cond, now: m.now, follow: m.follow,
		line: before.inLine(), books: m.books, by: m.by,
	}
	running, err := old.withdraw(ctx)
	if err != nil {
		return nil, err
	}
	if running {
		old.intend(Then{Replace: m.order})
		return old, nil
	}
	return m, m.takeOver(ctx, old)
}

// intend sets what the end of the running step does, and for whom. A child that was to take the order's place then does not come any more.
func (m *move) intend(then Then) {
	if before := m.order.Then; before != nil && before.Replace != nil {
		m.endOf(before.Replace, false)
	}
	then.By = m.by
	m.order.Then = &then
}

// takeOver adds the order of a move in place of another.
func (m *move) takeOver(ctx context.Context, old *move) error {
	if err := old.remove(ctx); err != nil {
		return err
	}
	old.listInLine()
	m.cond, m.events, m.follow, m.wakeAt = old.cond, old.events, old.follow, old.wakeAt
	m.books, m.others = old.books, old.others
	return m.add(ctx)
}

// remove takes the order away.
func (m *move) remove(ctx context.Context) error {
	m.say(event.OrderRemoved, typed.OrderRemoved{})
	m.gone = true
	m.ended(false)
	return m.leave(ctx)
}

// then does what was asked for while the step ran. The events of that are by who has asked.
func (m *move) then(ctx context.Context) error {
	then, said := m.order.Then, len(m.events)
	m.order.Then = nil
	if err := m.thenDo(ctx, then); err != nil {
		return err
	}
	for i := said; i < len(m.events); i++ {
		m.events[i].By = then.By
	}
	return nil
}

func (m *move) thenDo(ctx context.Context, then *Then) error {
	switch {
	case then.Remove:
		return m.remove(ctx)
	case then.Fail:
		return m.failHere(ctx)
	case then.Node != "":
		return m.goTo(ctx, then.Node)
	}
	g, err := m.e.graph(ctx, then.Replace.Chain, then.Replace.Version)
	if err != nil {
		return err
	}
	next := &move{e: m.e, set: m.set, graph: g, order: then.Replace, now: m.now, fresh: true}
	if err := next.takeOver(ctx, m); err != nil {
		return err
	}
	*m = *next
	return nil
}

// stepState is what becomes of the task of an order's step.
type stepState int

const (
	stepGone  stepState = iota // it has ended, or there is none
	stepWaits                  // to run
	stepRuns
)

// stepOf reads the task of an order's step.
func (e *Engine) stepOf(ctx context.Context, o *Order) (queue.Stored, stepState, error) {
	d, stored, err := e.stored(ctx, o)
	switch {
	case err != nil || d.task == nil || d.task.State.Final():
		return stored, stepGone, err
	case d.task.State.Queued():
		return stored, stepWaits, nil
	}
	return stored, stepRuns, nil
}
