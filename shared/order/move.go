package order

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// move is one change of an order, in one write: what it was read as, and what it becomes.
type move struct {
	e     *Engine
	set   *definition.Set
	graph *definition.Graph // of the order's version
	order *Order            // as it becomes
	cond  store.Condition   // of its item
	now   int64
	by    string // who has asked for it; needed only for what a running step's end does

	fresh  bool          // it is new
	gone   bool          // it has finished, or is removed
	filed  bool          // it finishes whatever became of its file
	making int           // so many of the order's children are made by this write
	failed bool          // it is a child that finishes by an error
	wakeAt int64         // the earliest alarm of what is written; 0: none
	line   store.Key     // where it waited for a place before; empty: nowhere
	events []event.Event // in their order
	follow queue.Follow  // all but the order's item and its events

	books  *book   // of this write; nil: none yet
	others []*move // of orders to which locks are handed on
}

// moveOf reads an order that is to be changed. The error is [ErrNoOrder] if there is none.
func (e *Engine) moveOf(ctx context.Context, path string) (*move, error) {
	o, cond, err := e.read(ctx, path)
	if err != nil {
		return nil, err
	}
	set, err := e.definitions.Current(ctx)
	if err != nil {
		return nil, err
	}
	g, err := e.graph(ctx, o.Chain, o.Version)
	if err != nil {
		return nil, err
	}
	return &move{e: e, set: set, graph: g, order: o, cond: cond, now: e.micro(), line: o.inLine()}, nil
}

// say adds an event of the order. The first is brought about by what happened to the order last, unless it says otherwise; the queue
// lets the others follow from those before them.
func (m *move) say(name string, fields any) {
	e := typed.OrderEvent(name, m.order.Path(), fields)
	if len(m.events) == 0 {
		e.Cause = event.CausedAt(m.lastSaid())
	}
	m.events = append(m.events, e)
}

// lastSaid returns the position of the last write with an event of the order; 0: there is none.
func (m *move) lastSaid() int64 {
	version, _ := m.cond.Version()
	return cmp.Or(m.order.Said, version)
}

// write returns what the move writes.
func (m *move) write() queue.Follow { return m.withBook(m.own()) }

// own is write without what is in the book.
func (m *move) own() queue.Follow {
	said := m.lastSaid()
	if m.order.Said = 0; len(m.events) == 0 {
		m.order.Said = said
	} else if !m.fresh {
		m.order.Changed = m.now
	}
	m.includeOthers()
	m.listInLine()
	o, f := m.order, m.follow
	f.Before, f.Written = m.events, m.wakes()
	key := orderKey(o.Path())
	switch {
	case m.gone && m.cond.IsAbsent():
	case m.gone:
		f.Ops = append(f.Ops, store.Delete(key, m.cond), store.Delete(listKey(o.Chain, o.ID), store.Always))
	default:
		f.Ops = append(f.Ops, store.Put(store.Item{Key: key, Value: encode(o)}, m.cond))
		if m.fresh {
			f.Ops = append(f.Ops, store.Put(store.Item{Key: listKey(o.Chain, o.ID), Value: []byte(o.ID)}, store.Always))
		}
	}
	return f
}

// wakes returns what is to be called once the move is written; nil: nothing.
func (m *move) wakes() func(context.Context) {
	at := m.wakeAt
	if at == 0 {
		return nil
	}
	return func(ctx context.Context) { m.e.written(ctx, at) }
}

// node returns the node where the order is.
func (m *move) node() (*definition.GraphNode, error) { return m.nodeAt(m.order.Node) }

func (m *move) nodeAt(id string) (*definition.GraphNode, error) {
	n, ok := m.graph.Node(id)
	if !ok {
		return nil, fmt.Errorf("%w: the job chain %s has no node %q in its version %d", ErrNoNode, m.order.Chain, id, m.order.Version)
	}
	return n, nil
}

// goTo changes the order's node. What is at its end and suspended is blacklisted.
func (m *move) goTo(ctx context.Context, id string) error {
	n, err := m.nodeAt(id)
	if err != nil {
		return err
	}
	if err := m.giveBack(ctx); err != nil {
		return err
	}
	o, from := m.order, m.order.Node
	o.Node, o.SetBack, o.Setbacks, o.Waiting = n.ID, false, 0, ""
	o.At = m.after(n.Delay, o.Started == 0)
	if n.Kind == definition.KindEnd && o.Suspended {
		m.blacklist()
	}
	m.visit(n)
	m.say(event.OrderNodeChanged, typed.OrderNodeChanged{NodeID: n.ID, FromNodeID: from, At: when(o.At)})
	return m.enter(ctx, n)
}

// after returns the earliest start of a step after a delay; planned says that it is not before the order's own time either.
func (m *move) after(delay time.Duration, planned bool) (at int64) {
	if delay > 0 {
		at = m.now + delay.Microseconds()
	}
	if planned && m.order.At > m.now {
		at = max(at, m.order.At)
	}
	return at
}

// visit counts that the order comes to a node. An order that has come there too often is suspended.
func (m *move) visit(n *definition.GraphNode) {
	o := m.order
	if o.Filing = nil; o.Waiting == typed.ForFile {
		o.Waiting = ""
	}
	if o.Visits == nil {
		o.Visits = map[string]int{}
	}
	if o.Visits[n.ID]++; o.Visits[n.ID] > m.graph.MaxVisits && n.Kind != definition.KindEnd && !o.Suspended {
		m.suspend()
	}
}

// eventsAtOnce is after how many events a write lets its orders go no further: they go on by an alarm.
const eventsAtOnce = 100

// enter begins what happens at a node. It is the place where the kinds of nodes differ.
func (m *move) enter(ctx context.Context, n *definition.GraphNode) error {
	if n.Kind == definition.KindEnd {
		return m.finish(ctx)
	}
	if m.order.Suspended || m.order.Idle {
		return nil
	}
	if len(m.events) >= eventsAtOnce { // it goes from node to node without a step
		m.alarm(max(m.now, m.order.At))
		return nil
	}
	if goesOn, err := m.admit(ctx); !goesOn || err != nil {
		return err
	}
	if parked, err := m.park(ctx, n); parked || err != nil {
		return err
	}
	if n.Kind != definition.KindJob && m.order.At > m.now {
		m.alarm(m.order.At)
		return nil
	}
	switch n.Kind {
	case definition.KindJob:
		return m.step(ctx, n)
	case definition.KindFork:
		return m.fork(ctx, n)
	case definition.KindPrompt:
		m.prompt(n)
		return nil
	case definition.KindWait:
		return m.awaits(ctx, n)
	default: // nothing runs at the others yet
		m.suspend()
		return nil
	}
}

// park lets the order wait where its chain or its node is stopped, or go on to the next node where that is the node's action. It
// reports whether the order has been dealt with. Race: a chain that is started meanwhile looks for the orders that wait; so the write
// has the condition that the chain's state is as it was read.
func (m *move) park(ctx context.Context, n *definition.GraphNode) (parked bool, err error) {
	o := m.order
	for _, exact := range []bool{false, true} {
		s, err := m.e.chainState(ctx, o.Chain, exact)
		if err != nil {
			return false, err
		}
		action := s.action(n)
		switch {
		case !s.Stopped && action == definition.ActionProcess:
			return false, nil
		case !exact:
			continue
		case !s.Stopped && action == definition.ActionNextState:
			return true, m.pass(ctx, n)
		}
		why := typed.ForNode
		if s.Stopped {
			why = typed.ForChain
		}
		key := chainKey(o.Chain)
		m.follow.Names = append(m.follow.Names, key.Partition)
		m.follow.Ops = joinedOps(m.follow.Ops, []store.Op{store.Check(key, s.condition())}) // it may have been parked before
		m.wait(why)
		return true, m.giveBack(ctx)
	}
	return true, nil
}

// wait lets the order wait at its node without a task.
func (m *move) wait(why string) {
	m.order.Waiting = why
	m.say(event.OrderWaiting, typed.OrderWaiting{NodeID: m.order.Node, For: why})
}

// release ends the order's wait: it begins at its node anew.
func (m *move) release(ctx context.Context) error {
	if err := m.stopWaiting(ctx); err != nil {
		return err
	}
	n, err := m.node()
	if err != nil {
		return err
	}
	m.sayItIsOver()
	return m.enter(ctx, n)
}

// sayItIsOver adds the event of what the order waited for, which is over.
func (m *move) sayItIsOver() {
	o := m.order
	if o.At <= m.now {
		o.At = 0
	}
	m.say(event.OrderNodeChanged, typed.OrderNodeChanged{NodeID: o.Node, FromNodeID: o.Node, At: when(o.At)})
}

// pass goes on as after a success at a node.
func (m *move) pass(ctx context.Context, n *definition.GraphNode) error {
	if n.Next == "" || m.isLast(n, n.Next) {
		return m.finish(ctx)
	}
	return m.goTo(ctx, n.Next)
}

// isLast reports whether the order's own end is a node, or a nested chain that an order leaves for the next one.
func (m *move) isLast(n *definition.GraphNode, next string) bool {
	end := m.order.EndNode
	if end == "" {
		return false
	}
	if _, nested := m.graph.Entries[end]; nested {
		return strings.HasPrefix(n.ID, end+"/") && !strings.HasPrefix(next, end+"/")
	}
	return n.ID == end
}

// step adds the task of a step, once the order holds the locks of its node. A job that is not declared waits for an instance that runs it.
func (m *move) step(ctx context.Context, n *definition.GraphNode) error {
	o := m.order
	if len(n.Locks) > 0 {
		if o.At > m.now { // it takes them when its time has come
			m.alarm(o.At)
			return nil
		}
		if all, err := m.takeLocks(ctx, n); !all || err != nil {
			return err
		}
	}
	t := queue.New{
		Dialect: task.OfOrder, Job: n.Job, Attempts: m.set.StepAttempts(n.Job), Priority: o.Priority, Payload: o.variables(),
		Order: &task.Order{Chain: o.Chain, ID: o.ID, Node: n.ID, First: o.Started == 0, Timeout: n.Timeout},
	}
	if o.At > m.now {
		t.NotBefore = time.UnixMicro(o.At)
	}
	t.Given = m.e.queue.NewID(&t)
	o.Task, o.Waiting = t.Given, ""
	m.follow.Add = append(m.follow.Add, t)
	return nil
}

// suspend keeps the order where it is until somebody resumes it.
func (m *move) suspend() {
	m.order.Suspended = true
	m.say(event.OrderSuspended, typed.OrderSuspended{})
}

// blacklist keeps the order at its end until somebody resumes it.
func (m *move) blacklist() {
	m.order.Suspended, m.order.Blacklisted = true, true
	m.say(event.OrderSuspended, typed.OrderSuspended{Blacklisted: true})
}

// finish ends the order where it is, unless it is suspended.
func (m *move) finish(ctx context.Context) error {
	o := m.order
	o.Task, o.Waiting, o.At = "", "", 0
	if o.Suspended {
		if !o.Blacklisted {
			m.blacklist()
		}
		return nil
	}
	if o.PutAway && !m.filed {
		return m.awaitFile(ctx)
	}
	m.say(event.OrderFinished, typed.OrderFinished{NodeID: o.Node})
	m.ended(!m.failed && !m.atFailedEnd())
	m.gone = !o.Permanent
	if err := m.leave(ctx); err != nil || m.gone {
		return err
	}
	return m.again(ctx)
}

// variables returns the order's variables as an object.
func (o *Order) variables() []byte {
	if len(o.Variables) == 0 {
		return []byte("{}")
	}
	return o.Variables
}

// when returns a time in microseconds as events have it; none for 0.
func when(micro int64) event.Time {
	if micro == 0 {
		return event.Time{}
	}
	return event.Time{Time: time.UnixMicro(micro).UTC()}
}
