package order

import (
	"context"
	"time"

	"github.com/millrace/millrace/shared/definition"
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
	if known, ok := e.chains.states.get(chain); ok && !exact && now-known.at < stateAge.Microseconds() && now >= known.at {
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
