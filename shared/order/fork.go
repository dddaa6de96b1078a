package order

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
)

// An order that comes to a fork waits there, without a task, for its children: orders of the same chain, with the ids ORDER!NAME, that
// go along the fork's branches. They are made after the fork, some in each write (children.go). A child's end leaves a note, which
// others count (join.go): children never meet at their parent's item.
//
// A child succeeds if it comes to the end of its branch. It fails if a step fails without an error node to go to, unless the node says
// on_error: suspend; if it comes to an end to which only errors lead; and if it is removed. Then it is gone: it is not suspended, and
// it is made again only with the whole fork.

// Fork is a fork at which an order waits for its children.
type Fork struct {
	Run       string `json:"r"`           // names this wait: children of an earlier one do not count
	Version   int    `json:"v"`           // of the chain, by which the children are made
	Children  int    `json:"n,omitempty"` // how many there are to be
	Made      int    `json:"m,omitempty"` // of them, the first ones
	Need      int    `json:"e,omitempty"` // how many must succeed
	Cancel    bool   `json:"c,omitempty"` // a failed one ends the others
	Succeeded int    `json:"s,omitempty"`
	Failed    int    `json:"f,omitempty"`

	Event event.ID `json:"ev,omitempty"` // of its OrderForked, once children are made; 0 if it is not known
}

// forJoin is what an order at a fork waits for. No OrderWaiting says so: OrderForked does.
const forJoin = "join"

// verdict is what the ends of children mean for their parent.
type verdict int

const (
	undecided verdict = iota
	met               // it goes on as after a success
	missed            // it goes on as after an error
)

// verdict returns what is decided: as soon as all children are made, and so many have ended that the others make no difference, or one
// has failed that cancels the others. Where none is to be made, that is at once.
func (f *Fork) verdict() verdict {
	switch {
	case f.Cancel && f.Failed > 0 && f.Succeeded < f.Need:
		return missed
	case f.Made < f.Children:
		return undecided
	case f.Succeeded >= f.Need:
		return met
	case f.Children-f.Failed < f.Need:
		return missed
	}
	return undecided
}

// newFork returns the fork of an order with so many children. If too few are there for the join, none is made.
func (m *move) newFork(n *definition.GraphFork, children int) *Fork {
	f := &Fork{Run: rand.Text(), Version: m.order.Version, Children: children, Need: n.AtLeast, Cancel: n.Cancel}
	if n.AtLeast == 0 {
		f.Need = children
	}
	if f.Need > children {
		f.Children = 0
	}
	return f
}

// fork lets the order wait for children that are yet to be made. Without a list that says how many, or where their variables would be
// too large, that is an error of the node.
func (m *move) fork(ctx context.Context, n *definition.GraphNode) error {
	o := m.order
	if o.At > m.now {
		m.alarm(o.At)
		return nil
	}
	children, why, err := o.children(n.Fork)
	if err != nil {
		return err
	}
	if why != "" {
		m.e.log.Warn("an order cannot fork, which is an error of its node", "order", o.Path(), "node", n.ID, "reason", why)
		return m.errorAt(ctx, n)
	}
	o.At, o.Waiting, o.Fork = 0, forJoin, m.newFork(n.Fork, children)
	m.say(event.OrderForked, typed.OrderForked{Children: o.Fork.Children})
	if o.Fork.Children == 0 {
		return m.join(ctx)
	}
	m.send(o.Path(), errand{Do: doMake, Order: o.Path(), Run: o.Fork.Run})
	return nil
}

// children returns how many children a fork of the order has, or why it can have none.
func (o *Order) children(n *definition.GraphFork) (number int, why string, err error) {
	if n.Each == "" {
		return len(n.Branches), "", nil
	}
	all, err := readVariables(o.Variables)
	if err != nil {
		return 0, "", err
	}
	list, ok := elements(all[n.Each])
	if !ok {
		return 0, fmt.Sprintf("the variable %q is no list", n.Each), nil
	}
	delete(all, n.Each)
	if i := largest(list); i >= 0 && len(encode(withElement(all, list, i))) > MaxVariables {
		why = fmt.Sprintf("with the element %d of the list %q as item, a child's variables take more than %d bytes", i, n.Each, MaxVariables)
	}
	return len(list), why, nil
}

// largest returns the index of the element of a list that takes the most bytes, with its index; -1 if there is none.
func largest(list []json.RawMessage) (index int) {
	index, most := -1, 0
	for i := range list {
		if size := len(list[i]) + len(strconv.Itoa(i)); size >= most {
			index, most = i, size
		}
	}
	return index
}

// withElement returns the variables of a child for an element of a list: those of its parent, item and index.
func withElement(parents map[string]json.RawMessage, list []json.RawMessage, i int) map[string]json.RawMessage {
	all := maps.Clone(parents)
	if all == nil {
		all = map[string]json.RawMessage{}
	}
	all["item"], all["index"] = list[i], json.RawMessage(strconv.Itoa(i))
	return all
}

// elements returns the elements of a variable; ok is false if it is no list.
func elements(variable json.RawMessage) (all []json.RawMessage, ok bool) {
	if len(variable) == 0 || variable[0] != '[' {
		return nil, false
	}
	return all, json.Unmarshal(variable, &all) == nil
}

// join lets the order go on, once that is decided and unless it is suspended. Children that still run are left to end by themselves,
// or are ended where a failure would end them.
func (m *move) join(ctx context.Context) error {
	o, f := m.order, m.order.Fork
	v := f.verdict()
	if v == undecided || o.Suspended {
		return nil
	}
	n, err := m.node()
	if err != nil {
		return err
	}
	m.say(event.OrderJoined, typed.OrderJoined{Succeeded: f.Succeeded, Failed: f.Failed})
	if e := &m.events[len(m.events)-1]; f.Event != 0 && len(m.events) == 1 {
		e.Cause = event.CausedBy(f.Event)
	}
	if f.Cancel {
		m.endChildren(true)
	}
	o.Fork, o.Waiting = nil, ""
	if v == met {
		return m.pass(ctx, n)
	}
	return m.errorAt(ctx, n)
}

// goOnWaiting ends the suspension of an order that waits for its children.
func (m *move) goOnWaiting(ctx context.Context, says typed.OrderResumed) error {
	m.order.Suspended = false
	m.say(event.OrderResumed, says)
	if m.rings() {
		m.ringAt(m.now)
	}
	return m.join(ctx)
}

// leaveFork ends the order's wait for its children, who are ended too.
func (m *move) leaveFork() {
	if m.order.Fork != nil {
		m.endChildren(false)
		m.order.Fork, m.order.Waiting = nil, ""
	}
}

// errorAt is an error at a node where no step has run: it goes to the error node, or is suspended. A child without either has failed.
func (m *move) errorAt(ctx context.Context, n *definition.GraphNode) error {
	switch {
	case n.Error != "" && n.OnError != definition.ErrorSuspends:
		return m.goTo(ctx, n.Error)
	case m.failsFor(n):
		return m.fail(ctx)
	}
	m.suspend()
	return m.giveBack(ctx)
}

// failsFor reports whether an error at a node that leads nowhere ends the order: it is a child, and the node does not say that it is
// to be suspended.
func (m *move) failsFor(n *definition.GraphNode) bool {
	return m.order.Parent != "" && !m.order.Suspended && n.OnError != definition.ErrorSuspends
}

// fail ends a child where it is, as failed.
func (m *move) fail(ctx context.Context) error {
	m.failed = true
	return m.finish(ctx)
}

// atFailedEnd reports whether the order is at an end to which only errors lead.
func (m *move) atFailedEnd() bool {
	n, ok := m.graph.Node(m.order.Node)
	return ok && n.Failed
}

// notHere returns an [ErrNoNode] that says why.
func notHere(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrNoNode, fmt.Errorf(format, args...))
}

// belongs returns an error unless a node is one where the order may be: a child has the nodes of its fork, and others have those that
// belong to no fork.
func (m *move) belongs(n *definition.GraphNode) error {
	of := ""
	if first, ok := m.graph.Node(m.order.First); ok && m.order.Parent != "" {
		of = first.ChildOf
	}
	switch n.ChildOf {
	case of:
		return nil
	case "":
		return notHere("the node %q is not one of the fork %q, whose child the order is", n.ID, of)
	}
	return notHere("the node %q is for the children of the fork %q", n.ID, n.ChildOf)
}

// whyJoin sets the reason of an order that waits for its children.
func (o *Order) whyJoin(r *Reason) bool {
	f := o.Fork
	r.Code = ReasonJoin
	r.Reason = fmt.Sprintf("It waits at the fork %s for its children: of %d, %d have succeeded, of which it needs %d, and %d have failed.",
		o.Node, f.Children, f.Succeeded, f.Need, f.Failed)
	r.Details["children"], r.Details["succeeded"], r.Details["failed"] = f.Children, f.Succeeded, f.Failed
	return true
}
