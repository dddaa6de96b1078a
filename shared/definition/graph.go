package definition

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
)

// GraphFormat is the version of a [Graph]'s JSON. [ReadGraph] refuses a later one.
const GraphFormat = 1

// ErrNoChain is returned for the graph of a job chain that is not declared.
var ErrNoChain = errors.New("definition: no such job chain")

// Graph is a job chain as orders go through it: its nodes with all defaults, the nodes of nested chains and of forks among them, in
// one id space. A node of a nested chain has the id OUTER/INNER; of a fork's branch, without an id of its own,
// FORK/BRANCH/NUMBER; the children of each element are at FORK/each. It is immutable.
//
// The limits are those of the chain itself: those of nested chains count only for orders of their own. What belongs to jobs, such as
// setbacks, is not in it: that is looked up in the set in force.
type Graph struct {
	Format    int           `json:"format"`              // [GraphFormat]
	Chain     string        `json:"chain"`               // path
	MaxOrders int           `json:"max_orders,omitzero"` // 0: no limit
	Timeout   time.Duration `json:"timeout,omitzero"`    // 0: none
	MaxVisits int           `json:"max_visits"`          // at least 1
	Nodes     []GraphNode   `json:"nodes"`               // at least one; an order begins at the first
	// Entries are the ids of the nodes that stand for nested chains, with the ids of the nodes where orders enter those.
	Entries map[string]string `json:"entries,omitempty"`

	places map[string]int // of nodes by id
}

// Kind is what happens at a node of a graph.
type Kind string

// The kinds of nodes.
const (
	KindJob    Kind = "job"    // a step runs
	KindEnd    Kind = "end"    // the order finishes
	KindFork   Kind = "fork"   // children run
	KindPrompt Kind = "prompt" // a person is asked
	KindWait   Kind = "wait"   // nothing happens until an event or a time
)

// GraphNode is a node of a [Graph]. All its ids are those of the graph.
type GraphNode struct {
	ID   string `json:"id"`
	Kind Kind   `json:"kind"`
	Job  string `json:"job,omitzero"` // path, of [KindJob]
	// Next is the node after success, "" if the order, or the fork's child, has ended well then. A prompt goes there only when it
	// is skipped.
	Next string `json:"next,omitzero"`
	// Error is the node after an error, "" if there is none: the order is suspended at this node.
	Error   string      `json:"error,omitzero"`
	OnError string      `json:"on_error,omitzero"` // [ErrorSetsBack], [ErrorSuspends] or ""
	On      []CodeRange `json:"on,omitempty"`      // by rising codes, without overlaps

	Delay   time.Duration `json:"delay,omitzero"`
	Timeout time.Duration `json:"timeout,omitzero"` // 0: none
	Action  string        `json:"action"`           // [ActionProcess], [ActionStop] or [ActionNextState]: the first value
	Locks   []NodeLock    `json:"locks,omitempty"`

	Fork   *GraphFork `json:"fork,omitzero"`   // of [KindFork]
	Prompt *Prompt    `json:"prompt,omitzero"` // of [KindPrompt]
	Wait   *Wait      `json:"wait,omitzero"`   // of [KindWait]

	ChildOf string `json:"child_of,omitzero"` // id of the fork whose children are at this node; "": orders themselves are
	Failed  bool   `json:"failed,omitzero"`   // of [KindEnd]: only errors lead here, so a fork's child that ends here has failed
}

// CodeRange is a range of return codes with the node that follows them.
type CodeRange struct {
	From int    `json:"from"`
	To   int    `json:"to"` // included
	Next string `json:"next"`
}

// GraphFork says which children a fork has, and how many of them must succeed. Either Branches or Each is set.
type GraphFork struct {
	Branches []GraphBranch `json:"branches,omitempty"` // by name
	Each     string        `json:"each,omitzero"`      // name of the variable that holds a list
	Node     string        `json:"node,omitzero"`      // where the children of Each begin
	AtLeast  int           `json:"at_least,omitzero"`  // of the join; 0: all
	Cancel   bool          `json:"cancel,omitzero"`    // a failed child cancels the others
}

// GraphBranch is a branch of a fork.
type GraphBranch struct {
	Name string `json:"name"`
	Node string `json:"node"` // where its child begins
}

// First returns the id of the node at which orders begin.
func (g *Graph) First() string { return g.Nodes[0].ID }

// Node returns the node with that id; of a nested chain's id, the node where orders enter it. The caller must not modify it.
func (g *Graph) Node(id string) (node *GraphNode, ok bool) {
	if entry, nested := g.Entries[id]; nested {
		id = entry
	}
	at, ok := g.places[id]
	if !ok {
		return nil, false
	}
	return &g.Nodes[at], true
}

// OnCode returns the id of the node that follows a return code whatever else the node says. If ok is false none is declared. The id
// is "" where [GraphNode.Next] would be.
func (n *GraphNode) OnCode(code int) (next string, ok bool) {
	for _, r := range n.On {
		if r.From <= code && code <= r.To {
			return r.Next, true
		}
	}
	return "", false
}

// Setback returns how long an order waits that this job has set back for the n-th time in a row, from 1. If ok is false, n is above
// the count that is marked as the maximum: the setback is an error.
func (j Job) Setback(n int) (delay time.Duration, ok bool) {
	for _, s := range j.Setbacks {
		if s.Count > n {
			break
		}
		if s.IsMaximum && n > s.Count {
			return 0, false
		}
		delay = s.Delay
	}
	return delay, true
}

// JSON returns the graph in the form that [ReadGraph] reads. Equal graphs have equal texts.
func (g *Graph) JSON() []byte { return encode(g) }

// Hash returns a hash of the graph's JSON, in hexadecimal.
func (g *Graph) Hash() string {
	sum := sha256.Sum256(g.JSON())
	return hex.EncodeToString(sum[:])
}

// ReadGraph returns the graph that [Graph.JSON] wrote. It returns an error for a text that is damaged, or of a later version.
func ReadGraph(text []byte) (*Graph, error) {
	g := new(Graph)
	if err := json.Unmarshal(text, g, json.WithUnmarshalers(readDurations)); err != nil {
		return nil, fmt.Errorf("definition: read the graph of a job chain: %w", err)
	}
	if g.Format < 1 || g.Format > GraphFormat || len(g.Nodes) == 0 {
		return nil, fmt.Errorf("definition: read the graph of a job chain: format %d, %d nodes, want format %d", g.Format, len(g.Nodes), GraphFormat)
	}
	g.arrange()
	return g, nil
}

// arrange makes the nodes known by their ids.
func (g *Graph) arrange() {
	g.places = make(map[string]int, len(g.Nodes))
	for i := range g.Nodes {
		g.places[g.Nodes[i].ID] = i
	}
}
