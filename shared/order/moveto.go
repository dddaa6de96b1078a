package order

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/store"
)

// An order stays on the version of its chain that it began with, until somebody moves it to another. It stays at its node: a step that
// runs goes on, and what its end means is for the new version to say; one that waits is replaced by one of the new version.

// moveTo moves the order to a version of its chain, 0: the newest. Nothing changes if its nodes are not there.
func (m *move) moveTo(ctx context.Context, number int) error {
	number, g, err := m.versionFor(ctx, number)
	if err != nil {
		return err
	}
	o := m.order
	if number == o.Version {
		return refuse(fmt.Sprintf("it is on version %d already", number))
	}
	n, err := m.fits(ctx, g, number)
	if err != nil {
		return err
	}
	if o.First == m.graph.First() {
		o.First = g.First()
	}
	if _, ok := g.Node(o.First); !ok {
		o.First = g.First()
	}
	m.graph, o.Version = g, number
	m.say(event.OrderMoved, typed.OrderMoved{Version: number, NodeID: o.Node})
	return m.beginAnew(ctx, n)
}

// versionFor returns the number and the graph of the version to which an order is to move.
func (m *move) versionFor(ctx context.Context, number int) (int, *definition.Graph, error) {
	o := m.order
	if number == 0 {
		_, g, err := m.e.declared(ctx, o.Chain)
		if err == nil {
			number, ops, err := m.e.versionOf(ctx, g, true)
			m.follow.Ops = append(m.follow.Ops, ops...)
			if len(ops) > 0 {
				m.follow.Names = append(m.follow.Names, ops[0].Item.Key.Partition)
			}
			return number, g, err
		}
		if !errors.Is(err, ErrNoChain) {
			return 0, nil, err
		}
		if number, err = m.e.newestVersion(ctx, o.Chain); err != nil {
			return 0, nil, err
		}
	}
	items, err := m.e.get(ctx, versionKey(o.Chain, number), goingKey(o.Chain, number))
	switch {
	case err != nil:
		return 0, nil, err
	case items[0] == nil || items[1] != nil && number != o.Version:
		return 0, nil, fmt.Errorf("%w: %s has no version %d, or nobody was on it any more", ErrNoVersion, o.Chain, number)
	}
	g, err := definition.ReadGraph(items[0].Value)
	return number, g, err
}

// fits returns the order's node in another version of its chain. The error is [ErrNodeGone] if the order cannot go on there.
func (m *move) fits(ctx context.Context, g *definition.Graph, number int) (*definition.GraphNode, error) {
	o := m.order
	gone := func(what, id string) error {
		return fmt.Errorf("%w: version %d of %s has no %s %q", ErrNodeGone, number, o.Chain, what, id)
	}
	n, ok := g.Node(o.Node)
	if !ok {
		return nil, gone("node", o.Node)
	}
	if _, ok := g.Node(o.EndNode); o.EndNode != "" && !ok {
		return nil, gone("end node", o.EndNode)
	}
	if then := o.Then; then != nil && then.Node != "" {
		if _, ok := g.Node(then.Node); !ok {
			return nil, gone("node", then.Node)
		}
	}
	before, err := m.node()
	if err == nil && before.Kind != n.Kind && (o.Task != "" || m.waitsAtNode()) {
		return nil, fmt.Errorf("%w: in version %d of %s the node %q is of another kind, and the order is under way there", ErrNodeGone, number, o.Chain, n.ID)
	}
	return n, err
}

// waitsAtNode reports whether the order waits for what its node says: an answer, an event, its children.
func (m *move) waitsAtNode() bool {
	switch m.order.Waiting {
	case "", typed.ForMaxOrders, typed.ForChain, typed.ForNode:
		return false
	}
	return true
}

// beginAnew lets a step that waits begin by the order's new version. What else it waits for stays as it is.
func (m *move) beginAnew(ctx context.Context, n *definition.GraphNode) error {
	o := m.order
	if o.Waiting == typed.ForNode {
		return m.release(ctx)
	}
	if o.Task == "" || o.Waiting != "" {
		return nil
	}
	stored, state, err := m.e.stepOf(ctx, o)
	if err != nil || state == stepRuns || state == stepWaits && stored.Task.Attempt > 0 { // its step has begun
		return err
	}
	if _, err := m.withdraw(ctx); err != nil {
		return err
	}
	return m.enter(ctx, n)
}

// newestVersion returns the number of a chain's newest version; 0: it has none.
func (e *Engine) newestVersion(ctx context.Context, chain string) (int, error) {
	item, err := e.newest(ctx, chain)
	if err != nil || item == nil {
		return 0, err
	}
	return numberOf(item)
}

func numberOf(item *store.Item) (int, error) {
	number, err := strconv.Atoi(item.Key.Sort)
	if err != nil {
		return 0, fmt.Errorf("%w: %v", errDamaged, item.Key)
	}
	return number, nil
}
