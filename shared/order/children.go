package order

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// What one write of children holds, and how many writes there are before others have their turn.
const (
	childrenRead   = 20
	childrenBytes  = 1 << 20
	childrenRounds = 50
)

// makeChildren makes children of an order, and reports whether all are made. What is made is in the order's item, in the same write: so
// whoever goes on makes none twice.
func (e *Engine) makeChildren(ctx context.Context, r *errand) (done bool, err error) {
	var k *kin
	for range childrenRounds {
		err := e.queue.ChangeAlone(ctx, func(ctx context.Context, _ *store.Conflict) (f queue.Follow, err error) {
			m, err := e.moveOf(ctx, r.Order)
			if errors.Is(err, ErrNoOrder) {
				done = true
				return r.only(store.Absent), nil
			}
			if err != nil {
				return f, err
			}
			fork := m.order.Fork
			if done = fork == nil || fork.Run != r.Run || fork.Made == fork.Children; done {
				return r.only(m.cond), nil
			}
			if k, err = m.kin(ctx, k); err != nil {
				return f, err
			}
			f, err = m.makeSome(ctx, k)
			done = fork.Made == fork.Children
			return f, err
		})
		if err != nil || done {
			return done, err
		}
	}
	return false, nil
}

// only returns a write of nothing but the condition that the order is as it was read. Race: the items of a write may become visible one by
// one, so who has seen an errand may still see the order as it was before.
func (r *errand) only(cond store.Condition) queue.Follow {
	return queue.Follow{Ops: []store.Op{store.Check(orderKey(r.Order), cond)}}
}

// makeSome makes as many children as one write holds.
func (m *move) makeSome(ctx context.Context, k *kin) (queue.Follow, error) {
	f := m.order.Fork
	if err := m.findForked(ctx); err != nil {
		return queue.Follow{}, err
	}
	from := f.Made
	found, err := m.e.get(ctx, k.keys(from, min(from+childrenRead, f.Children))...)
	if err != nil {
		return queue.Follow{}, err
	}
	all := m.newGroup()
	for i, item := range found {
		made := false
		fits, err := all.add(childPath(m.order.Path(), k.name(from+i)), func(*book) (part queue.Follow, err error) {
			part, made, err = m.child(ctx, k, from+i, item)
			return part, err
		})
		if err != nil {
			return queue.Follow{}, err
		}
		if !fits {
			break
		}
		if f.Made++; !made {
			f.Failed++
		}
	}
	m.making = f.Made - from
	if err := m.join(ctx); err != nil {
		return queue.Follow{}, err
	}
	return joined(all.follow, m.write()), nil
}

// child returns what the write of a child holds. Where another order has its id, it is not made: made is false. A child of an earlier wait at the fork
// makes room, once its running step has ended.
func (m *move) child(ctx context.Context, k *kin, i int, there *store.Item) (part queue.Follow, made bool, err error) {
	if k.node.Each != "" && i >= len(k.elements) { // somebody has changed the list meanwhile
		return queue.Follow{}, false, nil
	}
	order := k.child(i)
	if k.node.Each != "" && len(order.Variables) > MaxVariables { // likewise
		return queue.Follow{}, false, nil
	}
	c := &move{e: m.e, set: m.set, graph: k.graph, order: order, cond: store.Absent, now: m.now, fresh: true, books: m.books}
	because := event.CausedBy(m.order.Fork.Event)
	if there == nil {
		err = c.add(ctx)
		return c.because(because), true, err
	}
	before := new(Order)
	if err := decode(there, before); err != nil || before.Parent != m.order.Path() {
		return queue.Follow{}, false, err
	}
	if c, err = c.replace(ctx, before, store.VersionIs(there.Version)); err != nil {
		return queue.Follow{}, false, err
	}
	return c.because(because), true, nil
}

// because returns what the move of a child writes, whose first event has that cause.
func (m *move) because(cause event.Cause) queue.Follow {
	if len(m.events) > 0 {
		m.events[0].Cause = cause
	}
	return m.own()
}

// findForked finds out which event the fork of the order is: the last of the order in the write that it waits since, which is the
// one before the first children are made.
func (m *move) findForked(ctx context.Context) error {
	position, ok := m.cond.Version()
	if f := m.order.Fork; m.e.journal == nil || !ok || f.Made > 0 || f.Event != 0 {
		return nil
	}
	events, err := m.e.journal.EventsAt(ctx, position)
	m.order.Fork.Event = event.LastOf(events, event.Key{Path: m.order.Path()})
	return err
}

// kin is what the children of a fork have in common.
type kin struct {
	parent    *Order
	now       int64
	graph     *definition.Graph // of the children's version
	node      *definition.GraphFork
	variables map[string]json.RawMessage
	elements  []json.RawMessage // of a list
}

// kin reads what the children of the order have in common. They have its variables, but for the list whose elements they are for:
// with that, many children would take the square of their number.
//
// Those of the write before are taken if nothing is different, since a long list takes a while.
func (m *move) kin(ctx context.Context, before *kin) (*kin, error) {
	o := m.order
	if before != nil && before.parent.Fork.Run == o.Fork.Run && bytes.Equal(before.parent.Variables, o.Variables) {
		before.parent, before.now = o, m.now
		return before, nil
	}
	k, err := m.e.kinOf(ctx, o.Chain, o.Node, o.Fork.Version)
	if err != nil {
		return nil, err
	}
	k.parent, k.now = o, m.now
	if k.variables, err = readVariables(o.Variables); err != nil {
		return nil, err
	}
	if name := k.node.Each; name != "" {
		k.elements, _ = elements(k.variables[name])
		delete(k.variables, name)
	}
	return k, nil
}

// kinOf returns what is known of a fork's children without their parent.
func (e *Engine) kinOf(ctx context.Context, chain, node string, version int) (*kin, error) {
	g, err := e.graph(ctx, chain, version)
	if err != nil {
		return nil, err
	}
	n, ok := g.Node(node)
	if !ok || n.Fork == nil {
		return nil, notHere("%s has no fork %q in version %d", chain, node, version)
	}
	return &kin{graph: g, node: n.Fork}, nil
}

// name returns what the id of the i-th child has behind its parent's.
func (k *kin) name(i int) string {
	if k.node.Each != "" {
		return strconv.Itoa(i)
	}
	return k.node.Branches[i].Name
}

// keys returns the keys of the children from one to another, which is not included.
func (k *kin) keys(from, to int) (keys []store.Key) {
	for i := from; i < to; i++ {
		keys = append(keys, orderKey(childPath(k.parent.Path(), k.name(i))))
	}
	return keys
}

func childPath(parent, name string) string { return parent + "!" + name }

// child returns the i-th child, where it begins.
func (k *kin) child(i int) *Order {
	o, node := k.parent, k.node.Node
	variables := k.variables
	if k.node.Each == "" {
		node = k.node.Branches[i].Node
	} else {
		variables = withElement(variables, k.elements, i)
	}
	c := &Order{
		Chain: o.Chain, ID: o.ID + "!" + k.name(i), Version: o.Fork.Version, Node: node, First: node, Created: k.now,
		Priority: o.Priority, Parent: o.Path(), Run: o.Fork.Run,
	}
	if len(variables) > 0 {
		c.Variables = encode(variables)
	}
	return c
}

// endChildren has the order's children ended, after this write; stop has their running steps asked to stop.
func (m *move) endChildren(stop bool) {
	o, f := m.order, m.order.Fork
	if f.Made > 0 {
		m.send(o.Path(), errand{
			Do: doEnd, Order: o.Path(), Run: f.Run, Node: o.Node, Version: f.Version, Made: f.Made, Before: f.Made - m.making, Stop: stop,
		})
	}
}

// endBatch is how many children are ended in one write.
const endBatch = 8

// endChildren ends the children of a fork that are left: at once, or at the end of their running steps, which may be asked to stop.
func (e *Engine) endChildren(ctx context.Context, r *errand) error {
	chain, _ := Split(r.Order)
	k, err := e.kinOf(ctx, chain, r.Node, r.Version)
	if err != nil {
		return err
	}
	for ended := 0; ended < r.Made; {
		var some []task.ID
		err := e.queue.ChangeAlone(ctx, func(ctx context.Context, _ *store.Conflict) (f queue.Follow, err error) {
			f, some, err = e.endSome(ctx, r, k, ended)
			return f, err
		})
		if err != nil {
			return err
		}
		for _, running := range some {
			if r.Stop && running != "" {
				if err := e.stop(ctx, running); err != nil {
					return err
				}
			}
		}
		ended += len(some)
	}
	return nil
}

// endSome ends children of a fork from one on, as many as one write holds, and returns the running step of each, empty if there is none.
func (e *Engine) endSome(ctx context.Context, r *errand, k *kin, from int) (f queue.Follow, some []task.ID, err error) {
	m := &move{e: e, order: new(Order), now: e.micro()}
	all := m.newGroup()
	for len(some) < min(endBatch, r.Made-from) {
		i := from + len(some)
		path, fresh := childPath(r.Order, k.name(i)), i >= r.Before
		var running task.ID
		fits, err := all.add(path, func(b *book) (part queue.Follow, err error) {
			part, running, err = e.endChild(ctx, b, r, path, fresh)
			return part, err
		})
		if err != nil {
			return f, nil, err
		}
		if !fits {
			break
		}
		some = append(some, running)
	}
	return joined(all.follow, m.withBook(queue.Follow{})), some, nil
}

// endChild returns what ends a child of a fork, if it is one, and its step if that runs. Race: a fresh one was made by the write of the
// errand, and may be seen after it; so where it is none, it must be so when that is written.
func (e *Engine) endChild(ctx context.Context, b *book, r *errand, path string, fresh bool) (none queue.Follow, running task.ID, err error) {
	m, err := e.moveOf(ctx, path)
	if errors.Is(err, ErrNoOrder) {
		if fresh {
			none.Ops = []store.Op{store.Check(orderKey(path), store.Absent)}
		}
		return none, "", nil
	}
	if err != nil {
		return none, "", err
	}
	m.books = b
	o := m.order
	if o.Run != r.Run {
		part, running := m.endOther(r, fresh)
		return part, running, nil
	}
	o.Run = "" // nobody counts it any more
	runs, err := m.withdraw(ctx)
	switch {
	case err != nil:
		return none, "", err
	case runs:
		if o.Then == nil || o.Then.Replace == nil { // what replaces it removes it too
			o.Then = &Then{Remove: true}
		}
		return m.own(), o.Task, nil
	}
	if err := m.remove(ctx); err != nil {
		return none, "", err
	}
	return m.own(), "", nil
}

// endOther is endChild where the order at the child's path is another one: that for which the child waits, or one that an earlier try has
// ended, which may not have asked its step to stop.
func (m *move) endOther(r *errand, fresh bool) (part queue.Follow, running task.ID) {
	o := m.order
	if o.Then != nil && o.Then.Replace != nil && o.Then.Replace.Run == r.Run {
		o.Then = nil
		return m.own(), ""
	}
	if fresh {
		part.Ops = []store.Op{store.Check(orderKey(o.Path()), m.cond)}
	}
	if o.Parent == r.Order && o.Run == "" && o.Then != nil {
		running = o.Task
	}
	return part, running
}
