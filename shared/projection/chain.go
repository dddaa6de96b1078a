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
	TYPE           string       `json:"TYPE"` // JobChainOverview
	Path           string       `json:"path"`
	FileBasedState string       `json:"fileBasedState,omitzero"` // of its definition, as in the snapshot of definitions
	State          string       `json:"state"`                   // running or stopped
	Nodes          []NodeAction `json:"nodes"`                   // those whose action was changed, in the order of their ids; never nil
}

// NodeAction is what a node of a chain does with orders.
type NodeAction struct {
	NodeID string `json:"nodeId"`
	Action string `json:"action"` // process, stop or next_state
}

// chainKey is what the key of a chain's definition begins with; the chain's path follows.
const chainKey = "JobChain:"

// JobChains returns the projection of job chains, from the events of their definitions and those of their states. A chain whose
// definition is removed is removed from it, and is running when it is defined anew.
func JobChains() journal.Fold {
	return journal.Fold{Name: "JobChainOverview", Apply: func(state *journal.State, e *event.Event) {
		path, ok := e.Key.Path, event.FamilyOf(e.Type) == event.JobChainEvent
		if event.FamilyOf(e.Type) == event.FileBasedEvent {
			path, ok = strings.CutPrefix(path, chainKey)
		}
		if !ok {
			return
		}
		if e.Type == "FileBasedRemoved" {
			state.Delete(path)
			return
		}
		chain := JobChainOverview{State: "running", Nodes: []NodeAction{}}
		if before := state.Get(path); before != nil {
			_ = json.Unmarshal(before, &chain) // the bytes are those that Put stores below
		}
		chain.TYPE, chain.Path = "JobChainOverview", path
		chain.apply(e)
		if value, err := json.Marshal(chain); err == nil {
			state.Put(strings.Clone(path), value)
		}
	}}
}

func (c *JobChainOverview) apply(e *event.Event) {
	switch e.Type {
	case event.JobChainStateChanged:
		c.State = cmp.Or(typed.ReadOrder[typed.JobChainStateChanged](e).State, c.State)
	case event.JobChainNodeActionChanged:
		is := typed.ReadOrder[typed.JobChainNodeActionChanged](e)
		n, there := slices.BinarySearchFunc(c.Nodes, is.NodeID, func(n NodeAction, id string) int { return cmp.Compare(n.NodeID, id) })
		if !there {
			c.Nodes = slices.Insert(c.Nodes, n, NodeAction{})
		}
		c.Nodes[n] = NodeAction{is.NodeID, is.Action}
	default:
		c.FileBasedState = strings.TrimPrefix(e.Type, "FileBased")
	}
}
