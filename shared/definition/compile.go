package definition

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// maxGraphNodes is how many nodes a chain may have with all that are nested in it, so that a graph stays small enough to be stored.
const maxGraphNodes = 1000

var (
	errGraph     = errors.New("definition: the job chain has no graph")
	errManyNodes = fmt.Errorf("%w: more than %d nodes", errGraph, maxGraphNodes)
)

// Graph returns the graph of the job chain with that path. The error is [ErrNoChain] if the set does not declare it. Other errors
// are only possible for a set that was not read by [Read]. The caller must not modify the graph.
func (s *Set) Graph(chain string) (*Graph, error) {
	index := s.indexed()
	if known, ok := index.graphs.Load(chain); ok {
		return known.(*Graph), nil
	}
	g, err := compile(index.chains, chain)
	if err == nil {
		index.graphs.Store(chain, g)
	}
	return g, err
}

// compile returns the graph of a chain, made anew.
func compile(chains map[string]*JobChain, path string) (*Graph, error) {
	chain, ok := chains[path]
	if !ok || len(chain.Nodes) == 0 {
		return nil, fmt.Errorf("%w: %s", ErrNoChain, path)
	}
	c := &compiler{chains: chains, through: map[string]string{}, entries: map[string]string{}}
	if err := c.chain(chain, list{}); err != nil {
		return nil, err
	}
	g := &Graph{
		Format: GraphFormat, Chain: path, MaxOrders: chain.MaxOrders, Timeout: chain.Timeout,
		MaxVisits: cmp.Or(chain.MaxVisits, DefaultMaxVisits), Nodes: c.nodes, Entries: c.entries,
	}
	if err := c.link(g); err != nil {
		return nil, err
	}
	g.arrange()
	return g, nil
}

// compiler makes the nodes of a graph. At first they name nodes that are not in the graph, those that stand for nested chains and
// the ends of nested chains; link replaces these by where an order gets through them.
type compiler struct {
	chains  map[string]*JobChain
	under   []string // paths of the chains around
	nodes   []GraphNode
	through map[string]string // ids of such nodes with the ids that follow
	entries map[string]string // of those that stand for nested chains
}

// list is a list of nodes that is compiled: of a chain, or of a branch of a fork.
type list struct {
	nodes  []Node
	prefix string // of all ids of its chain: OUTER/ for a nested one
	branch string // of ids of nodes without their own: FORK/BRANCH/
	fork   string // id of the fork around, in the graph

	next, error string // of a nested chain, where orders go from its ends; "": they end there
}

// id returns the id of the i-th node in its chain, "" beyond the last.
func (l *list) id(i int) string {
	if i >= len(l.nodes) {
		return ""
	}
	return nodeID(l.nodes[i].ID, l.branch, i)
}

// nodeID returns the id of a node in its chain: its own, or the one that it gets as the i-th of a branch.
func nodeID(own, branch string, i int) string {
	if own == "" {
		return branch + strconv.Itoa(i+1)
	}
	return own
}

// ref returns the id in the graph of a node that is named by its id in the chain.
func (l *list) ref(id string) string {
	if id == "" {
		return ""
	}
	return l.prefix + id
}

func (c *compiler) chain(chain *JobChain, at list) error {
	if slices.Contains(c.under, chain.Path) {
		return fmt.Errorf("%w: %s goes through itself", errGraph, chain.Path)
	}
	c.under = append(c.under, chain.Path)
	at.nodes = chain.Nodes
	err := c.list(&at)
	c.under = c.under[:len(c.under)-1]
	return err
}

func (c *compiler) list(l *list) error {
	failed := failedEnds(l)
	for i := range l.nodes {
		n := &l.nodes[i]
		id := l.ref(l.id(i))
		next := cmp.Or(l.ref(n.Next), l.ref(l.id(i+1)), l.next)
		if len(c.nodes) >= maxGraphNodes {
			return errManyNodes
		}
		var err error
		switch {
		case n.Chain != "":
			err = c.nested(l, n, id, next)
		case n.kind() == KindEnd:
			c.end(l, id, failed[l.id(i)])
		default:
			c.nodes = append(c.nodes, compiled(l, n, id, next))
			err = c.fork(l, n, id)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// nested adds the nodes of the chain that a node stands for.
func (c *compiler) nested(l *list, n *Node, id, next string) error {
	chain, ok := c.chains[n.Chain]
	if !ok || len(chain.Nodes) == 0 {
		return fmt.Errorf("%w: %s", ErrNoChain, n.Chain)
	}
	inner := list{prefix: id + "/", fork: l.fork, next: next, error: l.ref(n.Error)}
	first := inner.ref(chain.Nodes[0].ID)
	c.through[id], c.entries[id] = first, first
	return c.chain(chain, inner)
}

// end adds an end. That of a nested chain is none where the chain around says how an order goes on.
func (c *compiler) end(l *list, id string, failed bool) {
	after := l.next
	if failed {
		after = l.error
	}
	if after != "" {
		c.through[id] = after
		return
	}
	c.nodes = append(c.nodes, GraphNode{ID: id, Kind: KindEnd, Action: ActionProcess, ChildOf: l.fork, Failed: failed})
}

// compiled returns a node other than an end, without what its fork says.
func compiled(l *list, n *Node, id, next string) GraphNode {
	node := GraphNode{
		ID: id, Kind: n.kind(), Job: n.Job, Next: next, Error: l.ref(n.Error), OnError: n.OnError, Delay: n.Delay, Timeout: n.Timeout,
		Action: cmp.Or(n.Action, ActionProcess), Locks: n.Locks, Wait: n.Wait, ChildOf: l.fork,
	}
	for codes, to := range n.On {
		from, last, err := parseCodes(codes)
		if err == nil {
			node.On = append(node.On, CodeRange{from, last, l.ref(to)})
		}
	}
	sortCodes(node.On)
	if n.Prompt != nil {
		prompt := *n.Prompt
		prompt.Default, prompt.Answers = l.ref(prompt.Default), map[string]string{}
		for answer, to := range n.Prompt.Answers {
			prompt.Answers[answer] = l.ref(to)
		}
		node.Prompt = &prompt
	}
	return node
}

// fork adds the nodes of a fork's children to those of the fork, which is the last one.
func (c *compiler) fork(l *list, n *Node, id string) error {
	if n.Fork == nil {
		return nil
	}
	fork := &GraphFork{Each: n.Fork.Each, Cancel: n.Fork.OnFailed == FailedCancels}
	if n.Join != nil {
		fork.AtLeast = n.Join.AtLeast
	}
	c.nodes[len(c.nodes)-1].Fork = fork
	if fork.Each != "" {
		fork.Node = id + "/each"
		c.nodes = append(c.nodes, GraphNode{
			ID: fork.Node, Kind: KindJob, Job: n.Fork.Job, Action: ActionProcess, ChildOf: id,
		})
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(n.Fork.Branches)) {
		branch := list{nodes: n.Fork.Branches[name], prefix: l.prefix, branch: strings.TrimPrefix(id, l.prefix) + "/" + name + "/", fork: id}
		fork.Branches = append(fork.Branches, GraphBranch{name, branch.ref(branch.id(0))})
		if err := c.list(&branch); err != nil {
			return err
		}
	}
	return nil
}

// link replaces the ids of nodes that orders only get through, in all nodes.
func (c *compiler) link(g *Graph) error {
	var err error
	link := func(id *string) {
		for range len(c.through) + 1 {
			after, gets := c.through[*id]
			if !gets {
				return
			}
			*id = after
		}
		err = fmt.Errorf("%w: nothing happens between two passes of %s", errGraph, *id)
	}
	for i := range g.Nodes {
		g.Nodes[i].refs(link)
	}
	for id, entry := range g.Entries {
		link(&entry)
		g.Entries[id] = entry
	}
	return err
}

// refs calls visit with each id of another node that the node names.
func (n *GraphNode) refs(visit func(id *string)) {
	n.onward(visit)
	if n.Fork != nil {
		for i := range n.Fork.Branches {
			visit(&n.Fork.Branches[i].Node)
		}
	}
}

// onward calls visit with each id of a node where an order may go on from the node.
func (n *GraphNode) onward(visit func(id *string)) {
	visit(&n.Next)
	visit(&n.Error)
	for i := range n.On {
		visit(&n.On[i].Next)
	}
	if n.Prompt != nil {
		visit(&n.Prompt.Default)
		for answer, to := range n.Prompt.Answers {
			visit(&to)
			n.Prompt.Answers[answer] = to
		}
	}
}

// kind returns what happens at the node; of a node with a nested chain it returns "".
func (n *Node) kind() Kind {
	switch {
	case n.Job != "":
		return KindJob
	case n.Fork != nil:
		return KindFork
	case n.Prompt != nil:
		return KindPrompt
	case n.Wait != nil:
		return KindWait
	case n.Chain != "":
		return ""
	}
	return KindEnd
}

// failedEnds returns the ids of the ends in a list to which errors lead, and no success.
func failedEnds(l *list) map[string]bool {
	errors, successes := map[string]bool{}, map[string]bool{}
	for i := range l.nodes {
		n := &l.nodes[i]
		if kind := n.kind(); kind != KindEnd && kind != KindPrompt {
			successes[cmp.Or(n.Next, l.id(i+1))] = true
		}
		errors[n.Error] = true
	}
	failed := map[string]bool{}
	for i := range l.nodes {
		id := l.id(i)
		failed[id] = errors[id] && !successes[id]
	}
	return failed
}
