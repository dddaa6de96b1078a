package order

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
)

// Act is something that an operator does with an order.
type Act struct {
	Kind      ActKind
	Node      string          // of [SetNode]; required
	Version   int             // of [Move]; default: the newest
	Variables json.RawMessage `json:",omitempty"` // of [Resume]: an object, which is merged with the order's variables; default: none
}

// ActKind is a kind of act.
type ActKind string

// The kinds of acts. While a step runs, SetNode, Reset and Remove take effect at its end, and Skip and RunNow are refused.
const (
	Suspend ActKind = "suspend"  // it stays where it is
	Resume  ActKind = "resume"   // it goes on; what is blacklisted finishes
	SetNode ActKind = "set-node" // it goes to a node
	Skip    ActKind = "skip"     // it goes on as after a success
	Reset   ActKind = "reset"    // it goes on at its first node, resumed and without a setback
	RunNow  ActKind = "run-now"  // its step waits for no time, and neither does the order at a node that does
	Move    ActKind = "move"     // it goes on by another version of its chain
	Remove  ActKind = "remove"   // it is taken away
)

// Act does something with an order. The error is [ErrState] if the order cannot do that as it is, or if it would change nothing.
// Others are [ErrNoOrder], [ErrNoNode], [ErrNoVersion], [ErrNodeGone], and those of [CheckVariables].
func (e *Engine) Act(ctx context.Context, chain, id string, a Act) error {
	path, by := chain+","+id, journal.Actor(ctx)
	return e.queue.Change(ctx, []string{path}, func(ctx context.Context, _ *store.Conflict) (queue.Follow, error) {
		m, err := e.moveOf(ctx, path)
		if err != nil {
			return queue.Follow{}, err
		}
		m.by = by
		if err := m.act(ctx, a); err != nil {
			return queue.Follow{}, err
		}
		return m.write(), nil
	})
}

func (m *move) act(ctx context.Context, a Act) error {
	if m.order.Idle && (a.Kind == SetNode || a.Kind == Skip || a.Kind == Reset) {
		return refuse("it waits for the next start by its schedule")
	}
	switch a.Kind {
	case Suspend:
		return m.suspendAsAsked(ctx)
	case Resume:
		return m.resume(ctx, a.Variables)
	case SetNode:
		return m.setNode(ctx, a.Node)
	case Skip:
		return m.skip(ctx)
	case Reset:
		return m.reset(ctx)
	case RunNow:
		return m.runNow(ctx)
	case Move:
		return m.moveTo(ctx, a.Version)
	case Remove:
		return m.removeAsAsked(ctx)
	}
	return fmt.Errorf("%w: act %q", ErrInvalid, a.Kind)
}

// refuse returns an [ErrState] that says why.
func refuse(why string) error { return fmt.Errorf("%w: %s", ErrState, why) }

func (m *move) suspendAsAsked(ctx context.Context) error {
	o := m.order
	if o.Suspended {
		return refuse("it is suspended already")
	}
	if _, err := m.withdraw(ctx); err != nil {
		return err
	}
	m.suspend()
	if o.Waiting != typed.ForMaxOrders && o.Waiting != typed.ForLock {
		return nil
	}
	m.sayItIsOver() // it leaves the line
	return m.stopWaiting(ctx)
}

func (m *move) resume(ctx context.Context, variables json.RawMessage) error {
	o := m.order
	if !o.Suspended {
		return refuse("it is not suspended")
	}
	merged, changed, err := merge(o.Variables, variables)
	if err != nil {
		return err
	}
	o.Variables = merged
	var says typed.OrderResumed
	if changed {
		says.Variables = jsontext.Value(o.variables())
	}
	return m.goOn(ctx, says)
}

// goOn ends the suspension of an order, which begins at its node anew unless its step runs.
func (m *move) goOn(ctx context.Context, says typed.OrderResumed) error {
	o := m.order
	if o.Fork != nil {
		return m.goOnWaiting(ctx, says)
	}
	ended, waits := o.Blacklisted || o.Waiting == typed.ForFile, o.staysWaiting()
	o.Suspended, o.Blacklisted = false, false
	if !waits {
		o.Waiting = ""
	}
	if o.At <= m.now {
		o.At, o.SetBack = 0, false
	}
	if o.Task == "" && !ended {
		says.At = when(o.At)
	}
	m.say(event.OrderResumed, says)
	if o.Idle {
		m.rest()
		return nil
	}
	if m.rings() {
		m.ringAt(m.now)
	}
	n, err := m.node()
	switch {
	case err != nil:
		return err
	case ended:
		return m.finish(ctx)
	case o.Task != "" || waits:
		return nil
	}
	return m.enter(ctx, n)
}

// setNode sends the order to a node, at once or at the end of its running step.
func (m *move) setNode(ctx context.Context, id string) error {
	o := m.order
	n, err := m.nodeAt(id)
	if err == nil {
		err = m.belongs(n)
	}
	if err != nil {
		return err
	}
	running, err := m.withdraw(ctx)
	switch {
	case err != nil:
		return err
	case running && o.Then != nil && o.Then.Node == n.ID:
		return refuse("it goes there already, once its step has ended")
	case running:
		m.intend(Then{Node: n.ID})
		return nil
	case o.Node == n.ID:
		return refuse("it is at this node already")
	}
	return m.sendTo(ctx, n.ID)
}

// sendTo goes to a node whatever the order is doing there where it is; no step of it runs.
func (m *move) sendTo(ctx context.Context, id string) error {
	if err := m.stopWaiting(ctx); err != nil {
		return err
	}
	if m.order.Blacklisted {
		m.order.Blacklisted = false
		m.suspend()
	}
	return m.goTo(ctx, id)
}

func (m *move) skip(ctx context.Context) error {
	n, err := m.node()
	if err != nil {
		return err
	}
	if n.Kind == definition.KindEnd || m.order.Blacklisted {
		return refuse("it is at its end")
	}
	running, err := m.withdraw(ctx)
	switch {
	case err != nil:
		return err
	case running:
		return refuse("its step runs; skip the next one, or stop this one's task")
	}
	if err := m.stopWaiting(ctx); err != nil {
		return err
	}
	return m.pass(ctx, n)
}

func (m *move) reset(ctx context.Context) error {
	o := m.order
	running, err := m.withdraw(ctx)
	if err != nil {
		return err
	}
	away, held := o.Node != o.First, o.Suspended || o.SetBack
	o.At = o.plannedAt(m.now)
	switch {
	case running && !held && o.Then != nil && o.Then.Node == o.First, !running && !held && !away:
		return refuse("it is at its first node already")
	case held:
		o.Suspended, o.Blacklisted = false, false
		m.say(event.OrderResumed, typed.OrderResumed{At: when(o.At)})
	}
	o.SetBack, o.Setbacks, o.Visits = false, 0, nil
	if running {
		m.intend(Then{Node: o.First})
		return nil
	}
	if away {
		return m.sendTo(ctx, o.First)
	}
	n, err := m.node()
	if err != nil {
		return err
	}
	if err := m.stopWaiting(ctx); err != nil {
		return err
	}
	m.visit(n)
	return m.enter(ctx, n)
}

// plannedAt returns the time of the order's start, if it is to come; otherwise 0.
func (o *Order) plannedAt(now int64) int64 {
	if o.Started > 0 || o.At <= now {
		return 0
	}
	return o.At
}

// runNow ends the wait for a time: of the order's step, or at its node. A step that waits for another attempt begins anew.
func (m *move) runNow(ctx context.Context) error {
	o := m.order
	switch {
	case o.Suspended:
		return refuse("it is suspended; resume it first")
	case o.Idle:
		o.Starts = append([]int64{m.now}, o.Starts...)
		return m.begin(ctx)
	case o.Waiting == typed.ForTime:
		n, err := m.node()
		if err != nil {
			return err
		}
		return m.leaveFor(ctx, n, n.Next)
	case o.Waiting != "":
		return refuse("it waits for something else than a time")
	}
	stored, state, err := m.e.stepOf(ctx, o)
	switch {
	case err != nil:
		return err
	case state == stepRuns:
		return refuse("its step runs")
	case o.At <= m.now && (state == stepGone || stored.Task.NotBefore <= m.now):
		return refuse("its step waits for no time")
	}
	running, err := m.withdraw(ctx)
	switch {
	case err != nil:
		return err
	case running:
		return refuse("its step is under way, and something else was asked for at its end")
	}
	o.At = 0
	return m.goOn(ctx, typed.OrderResumed{})
}

func (m *move) removeAsAsked(ctx context.Context) error {
	o := m.order
	running, err := m.withdraw(ctx)
	switch {
	case err != nil:
		return err
	case running && o.Then != nil && o.Then.Remove:
		return refuse("it is removed already, once its step has ended")
	case running:
		m.intend(Then{Remove: true})
		return nil
	}
	return m.remove(ctx)
}
