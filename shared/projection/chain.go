package projection

import (
	"cmp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/journal"
)

// JobChainOverview is an element of the snapshot of job chains, as JobScheduler shows them.
type JobChainOverview struct {
	TYPE           string             `json:"TYPE"` // JobChainOverview
	Path           string             `json:"path"`
	FileBasedState string             `json:"fileBasedState,omitzero"` // of its definition, as in the snapshot of definitions; empty: it is not declared
	State          string             `json:"state"`                   // running or stopped
	Nodes          []typed.NodeAction `json:"nodes"`                   // those whose action was changed, or is declared as another than process, by their ids; never nil
	Declared       []string           `json:"declared,omitempty"`      // the ids of those whose action is the declared one
}

// chainKey is what the key of a chain's definition begins with; the chain's path follows.
const chainKey = "JobChain:"

// JobChains returns the projection of job chains, from the events of their definitions and those of their states. A chain whose
// definition is removed is removed from it, unless it is stopped or the action of a node was changed, since that outlives the
// definition.
func JobChains() journal.Fold {
	return journal.Fold{Name: "JobChainOverview", Apply: func(state *journal.State, e *event.Event) {
		path, ok := e.Key.Path, event.FamilyOf(e.Type) == event.JobChainEvent
		if event.FamilyOf(e.Type) == event.FileBasedEvent {
			path, ok = strings.CutPrefix(path, chainKey)
		}
		if !ok {
			return
		}
		chain := JobChainOverview{State: "running", Nodes: []typed.NodeAction{}}
		if before := state.Get(path); before != nil {
			_ = json.Unmarshal(before, &chain) // the bytes are those that Put stores below
		}
		chain.TYPE, chain.Path = "JobChainOverview", path
		chain.apply(e)
		if chain.FileBasedState == "" && chain.State == "running" && len(chain.Nodes) == 0 {
			state.Delete(path)
		} else if value, err := json.Marshal(chain); err == nil {
			state.Put(strings.Clone(path), value)
		}
	}}
}

func (c *JobChainOverview) apply(e *event.Event) {
	switch e.Type {
	case event.JobChainStateChanged:
		c.State = cmp.Or(typed.ReadOrder[typed.JobChainStateChanged](e).State, c.State)
	case event.JobChainNodeActionChanged:
		is := typed.NodeAction(typed.ReadOrder[typed.JobChainNodeActionChanged](e))
		n, there := find(c.Nodes, is.NodeID)
		if !there {
			c.Nodes = slices.Insert(c.Nodes, n, typed.NodeAction{})
		}
		c.Nodes[n] = is
		c.Declared = slices.DeleteFunc(c.Declared, func(id string) bool { return id == is.NodeID })
	case "FileBasedActivated":
		c.FileBasedState = fileBasedState(e)
	default:
		c.declare(typed.ReadOrder[typed.ChainDeclared](e).Nodes)
		if c.FileBasedState = fileBasedState(e); c.FileBasedState == removed {
			c.FileBasedState = ""
		}
	}
}

// declare replaces the declared actions. Those that were changed since count more.
func (c *JobChainOverview) declare(nodes []typed.NodeAction) {
	c.Nodes = slices.DeleteFunc(c.Nodes, func(n typed.NodeAction) bool { return slices.Contains(c.Declared, n.NodeID) })
	c.Declared = nil
	for _, n := range nodes {
		if at, changed := find(c.Nodes, n.NodeID); !changed {
			c.Nodes, c.Declared = slices.Insert(c.Nodes, at, n), append(c.Declared, n.NodeID)
		}
	}
}

// find returns where in nodes, which are in the order of their ids, that one is or belongs.
func find(nodes []typed.NodeAction, id string) (at int, there bool) {
	return slices.BinarySearchFunc(nodes, id, func(n typed.NodeAction, id string) int { return cmp.Compare(n.NodeID, id) })
}
