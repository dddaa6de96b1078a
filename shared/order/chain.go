package order

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
)

// chainState is what operators have set for a chain, whatever its version.
type chainState struct {
	Stopped bool              `json:"s,omitempty"`
	Actions map[string]string `json:"a,omitempty"` // of nodes, by id, where they differ from the definition's

	version int64 // of the item; 0: there is none
}

// chains caches the states of chains.
type chains struct{ states cache[*chainState] }

// stateAge is how old a chain's state may be that an order goes by when nothing is stopped. After a change, orders that others have
// moved meanwhile are looked at again.
const stateAge = time.Second

func chainKey(chain string) store.Key { return work("chain/"+store.Fit(chain), only) }

// chainState returns the state of a chain; an exact one is read, another may be as old as stateAge.
func (e *Engine) chainState(ctx context.Context, chain string, exact bool) (*chainState, error) {
	now := e.micro()
	if known, ok := e.chains.states.get(chain); ok && !exact && known.within(stateAge, now) {
		return known.value, nil
	}
	items, err := e.get(ctx, chainKey(chain))
	if err != nil {
		return nil, err
	}
	s := new(chainState)
	if items[0] != nil {
		if err := decode(items[0], s); err != nil {
			return nil, err
		}
		s.version = items[0].Version
	}
	e.chains.states.put(chain, s, now)
	return s, nil
}

// condition returns the condition that the state is as it was read.
func (s *chainState) condition() store.Condition {
	if s.version == 0 {
		return store.Absent
	}
	return store.VersionIs(s.version)
}

// action returns what a node does.
func (s *chainState) action(n *definition.GraphNode) string {
	if action, set := s.Actions[n.ID]; set {
		return action
	}
	return n.Action
}

// StopChain stops or starts a chain: orders of a stopped one wait where they are, once their running steps have ended. The errors are
// [ErrNoChain], and [ErrState] if it would change nothing.
func (e *Engine) StopChain(ctx context.Context, chain string, stop bool) error {
	state := "running"
	if stop {
		state = "stopped"
	}
	return e.setChain(ctx, chain, func(_ *definition.Graph, s *chainState) (event.Event, error) {
		if s.Stopped == stop {
			return event.Event{}, refuse("the chain is " + state + " already")
		}
		s.Stopped = stop
		return typed.OrderEvent(event.JobChainStateChanged, chain, typed.JobChainStateChanged{State: state}), nil
	})
}

// SetAction sets what a node of a chain does with orders: one of [definition.ActionProcess] and so on. The node may be one of an older
// version of the chain, since orders may wait there. The errors are [ErrNoChain], [ErrNoNode], [ErrInvalid], and [ErrState] if it would
// change nothing.
func (e *Engine) SetAction(ctx context.Context, chain, node, action string) error {
	if !slices.Contains(Actions, action) {
		return fmt.Errorf("%w: action %q, want one of %q", ErrInvalid, action, Actions)
	}
	return e.setChain(ctx, chain, func(g *definition.Graph, s *chainState) (event.Event, error) {
		nodes, err := e.nodesOf(ctx, g, node)
		if err != nil {
			return event.Event{}, err
		}
		if len(nodes) == 0 {
			return event.Event{}, fmt.Errorf("%w: %s has no node %q", ErrNoNode, chain, node)
		}
		if !slices.ContainsFunc(nodes, func(n *definition.GraphNode) bool { return n.Kind != definition.KindEnd }) {
			return event.Event{}, refuse("the node is an end, which has no action")
		}
		if !slices.ContainsFunc(nodes, func(n *definition.GraphNode) bool { return s.action(n) != action }) {
			return event.Event{}, refuse("the action of the node is " + action + " already")
		}
		actions := maps.Clone(s.Actions)
		if actions == nil {
			actions = map[string]string{}
		}
		actions[nodes[0].ID] = action
		s.Actions = actions
		fields := typed.JobChainNodeActionChanged{NodeID: nodes[0].ID, Action: action}
		return typed.OrderEvent(event.JobChainNodeActionChanged, chain, fields), nil
	})
}

// Actions are the actions that a node may have.
var Actions = []string{definition.ActionProcess, definition.ActionStop, definition.ActionNextState}

// setChain changes the state of a chain, and then looks at its first orders; the others follow. An alarm in the same write has that done
// again a little later: other processes may go by the state before for stateAge, and this one may end meanwhile.
func (e *Engine) setChain(ctx context.Context, chain string, set func(*definition.Graph, *chainState) (event.Event, error)) error {
	_, g, err := e.declared(ctx, chain)
	if err != nil {
		return err
	}
	key := chainKey(chain)
	err = e.queue.Change(ctx, []string{key.Partition}, func(ctx context.Context, _ *store.Conflict) (queue.Follow, error) {
		known, err := e.chainState(ctx, chain, true)
		if err != nil {
			return queue.Follow{}, err
		}
		s := *known
		changed, err := set(g, &s)
		if err != nil {
			return queue.Follow{}, err
		}
		again := e.micro() + 2*stateAge.Microseconds()
		e.alarms.at(again)
		return queue.Follow{Before: []event.Event{changed}, Ops: []store.Op{
			store.Put(store.Item{Key: key, Value: encode(&s)}, known.condition()),
			store.Put(store.Item{Key: dueKey(again, chain), Value: []byte(chain)}, store.Always),
		}}, nil
	})
	e.chains.states.drop(chain)
	if err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	next, _, err := e.walk(ctx, chain, "")
	if err == nil && next != "" {
		now := e.micro()
		text := walkPrefix + chain
		alarm := store.Item{Key: dueKey(now, text), Version: 1, Value: []byte(text + "," + next)}
		if err = e.put(ctx, "set an alarm", store.Put(alarm, store.Always)); err == nil {
			e.written(ctx, now)
		}
	}
	if err != nil {
		e.log.Warn("the orders of a chain follow its new state late", "chain", chain, "error", err)
	}
	return nil
}

// followChain lets an order whose step waits to run, or that waits for its chain or its node, do what these now say.
func (m *move) followChain(ctx context.Context) (changed bool, err error) {
	o := m.order
	n, err := m.node()
	if err != nil || o.Suspended || n.Kind == definition.KindEnd {
		return false, err
	}
	s, err := m.e.chainState(ctx, o.Chain, false)
	if err != nil {
		return false, err
	}
	held := s.Stopped || s.action(n) != definition.ActionProcess
	switch {
	case o.Waiting == typed.ForChain && s.Stopped, o.Waiting == typed.ForNode && !s.Stopped && s.action(n) == definition.ActionStop:
		return false, nil
	case o.Waiting == typed.ForChain, o.Waiting == typed.ForNode:
		return true, m.release(ctx)
	case o.Task == "" || !held:
		return false, nil
	}
	if running, err := m.withdraw(ctx); running || err != nil {
		return false, err
	}
	return true, m.enter(ctx, n)
}
