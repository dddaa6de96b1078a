package definition

import (
	"maps"
	"slices"
	"strings"

	"github.com/millrace/millrace/shared/strict"
)

func (r *reader) chain(d *strict.Document, n *strict.Node, path string) {
	c := JobChain{}
	chain := &chainReader{reader: r, ids: map[string]bool{}}
	all := &nodeList{chain: chain}
	d.Object(n, path, strict.Fields{
		"path":       chainPath(&c.Path),
		"max_orders": count(&c.MaxOrders),
		"timeout":    duration(&c.Timeout),
		"max_visits": count(&c.MaxVisits),
		"nodes":      all.read,
	})
	d.Need(n, path, "path", "nodes")
	c.Nodes = all.nodes
	all.check(d, "")
	r.claim(d, n, path, "job chain", c.Path)
	r.chains = append(r.chains, declaredChain{reference{n, path, c.Path}, chain.nested})
	r.set.JobChains = append(r.set.JobChains, c)
}

// chainReader is the state while one chain is read.
type chainReader struct {
	*reader
	ids    map[string]bool // of the nodes that have one, in branches too
	nested []reference     // to other chains
}

// declaredChain is what the checks of all chains together need to know of one.
type declaredChain struct {
	place  reference // of the chain itself, to its path
	nested []reference
}

// nodeList is a list of nodes that is read: of a chain, or of a branch of a fork.
type nodeList struct {
	chain    *chainReader
	inBranch bool // so that ids are optional
	nodes    []Node
	stations []station // of the nodes
}

// station is what the checks of a list need to know of a node.
type station struct {
	place    reference // of the node itself, to its id
	kind     Kind      // "" for a nested chain
	onward   bool      // it says its next
	twice    bool      // an earlier node has its id
	refs     []reference
	branches map[string]*nodeList
}

// reference is a place in the document, and the name of what the place refers to.
type reference struct {
	node *strict.Node
	path string
	to   string
}

// read reads the list.
func (l *nodeList) read(d *strict.Document, n *strict.Node, path string) {
	d.List(n, path, l.element)
	if len(l.nodes) == 0 {
		d.Fail(n, path, "want at least one node")
	}
}

// element reads a node.
func (l *nodeList) element(d *strict.Document, n *strict.Node, path string) {
	node := Node{}
	s := &station{place: reference{node: n, path: path}}
	d.Object(n, path, strict.Fields{
		"id":       l.id(&node.ID),
		"job":      anyJobPath(&node.Job),
		"fork":     l.fork(&node, s),
		"prompt":   s.prompt(&node.Prompt),
		"wait":     wait(&node.Wait),
		"chain":    l.nested(&node.Chain),
		"next":     s.refer(&node.Next),
		"error":    s.refer(&node.Error),
		"on_error": word(&node.OnError, ErrorSetsBack, ErrorSuspends),
		"on":       s.codes(&node.On),
		"delay":    duration(&node.Delay),
		"timeout":  duration(&node.Timeout),
		"action":   word(&node.Action, ActionProcess, ActionStop, ActionNextState),
		"join":     join(&node.Join),
		"locks":    l.locks(&node.Locks),
	})
	if !l.inBranch {
		d.Need(n, path, "id")
	}
	given := strict.Members(n)
	_, s.onward = given["next"]
	s.kind = kindGiven(d, n, path, given)
	if f := node.Fork; node.Join != nil && f != nil && f.Branches != nil && node.Join.AtLeast > len(f.Branches) {
		d.Fail(given["join"], path+".join", "at_least %d is more than the fork has branches: %d", node.Join.AtLeast, len(f.Branches))
	}
	l.nodes, l.stations = append(l.nodes, node), append(l.stations, *s)
}

// stationFields are the fields that a node may have beside its id, after the one that makes it such a node.
var stationFields = []struct {
	is   string // the field
	kind Kind
	may  []string
}{
	{"job", KindJob, []string{"next", "error", "on_error", "on", "delay", "timeout", "action", "locks"}},
	{"fork", KindFork, []string{"next", "error", "join", "action"}},
	{"prompt", KindPrompt, []string{"next", "action"}},
	{"wait", KindWait, []string{"next", "error", "action"}},
	{"chain", "", []string{"next", "error"}},
}

// optional are all fields that only some nodes may have.
var optional = []string{"next", "error", "on_error", "on", "delay", "timeout", "action", "locks", "join"}

// kindGiven returns what kind of node has the fields given, and checks that it may have them.
func kindGiven(d *strict.Document, n *strict.Node, path string, given map[string]*strict.Node) Kind {
	kind, is, may := KindEnd, "", []string(nil)
	for _, of := range stationFields {
		if _, ok := given[of.is]; !ok {
			continue
		}
		if is != "" {
			d.Fail(n, path, "a node has one of job, fork, prompt, wait and chain, this has %s and %s", is, of.is)
			return kind
		}
		kind, is, may = of.kind, of.is, of.may
	}
	for _, key := range slices.Sorted(maps.Keys(given)) {
		switch {
		case key == "id" || key == is || slices.Contains(may, key) || !slices.Contains(optional, key):
		case is == "":
			d.Fail(given[key], path+"."+key, "a node without job, fork, prompt, wait and chain is an end, which has no %s", key)
		default:
			d.Fail(given[key], path+"."+key, "a node with a %s has no %s, only %s", is, key, strings.Join(may, ", "))
		}
	}
	return kind
}

func (l *nodeList) id(to *string) strict.Visit {
	return func(d *strict.Document, n *strict.Node, path string) {
		name(to)(d, n, path)
		if l.chain.ids[*to] {
			d.Fail(n, path, "the node %s is declared twice", *to)
		}
		l.chain.ids[*to] = *to != ""
	}
}

// nested reads the path of another chain.
func (l *nodeList) nested(to *string) strict.Visit {
	return func(d *strict.Document, n *strict.Node, path string) {
		chainPath(to)(d, n, path)
		if *to != "" {
			l.chain.nested = append(l.chain.nested, reference{n, path, *to})
		}
	}
}

// refer reads the id of a node of the same list, which may be declared later.
func (s *station) refer(to *string) strict.Visit {
	return func(d *strict.Document, n *strict.Node, path string) {
		*to = d.Text(n, path)
		s.refs = append(s.refs, reference{n, path, *to})
	}
}

// codes reads nodes by return codes.
func (s *station) codes(to *map[string]string) strict.Visit {
	return func(d *strict.Document, n *strict.Node, path string) {
		*to = map[string]string{}
		var known []CodeRange
		d.Map(n, path, "nodes by return codes such as 7 or 7..9", func(key, value *strict.Node, at string) {
			var id string
			s.refer(&id)(d, value, at)
			(*to)[key.Value] = id
			from, last, err := parseCodes(key.Value)
			if err != nil {
				d.Fail(key, at, "%v", err)
				return
			}
			for _, k := range known {
				if from <= k.To && k.From <= last {
					d.Fail(key, at, "%s overlaps %s", key.Value, k.text())
				}
			}
			known = append(known, CodeRange{From: from, To: last})
		})
	}
}

// locks reads the locks that steps at a node hold.
func (l *nodeList) locks(to *[]NodeLock) strict.Visit {
	return each(func(d *strict.Document, n *strict.Node, path string) {
		if len(*to) == MaxLocks {
			d.Fail(n, path, "a node has at most %d locks; declare one lock for what steps always hold together", MaxLocks)
		}
		var lock NodeLock
		d.Object(n, path, strict.Fields{
			"name": func(d *strict.Document, n *strict.Node, path string) {
				name(&lock.Name)(d, n, path)
				l.chain.finally(func() { l.chain.checkLock(d, n, path, lock.Name) })
			},
			"shared": boolean(&lock.Shared),
		})
		d.Need(n, path, "name")
		for _, other := range *to {
			if lock.Name != "" && other.Name == lock.Name {
				d.Fail(n, path, "the lock %s is named twice", lock.Name)
			}
		}
		*to = append(*to, lock)
	})
}

func (r *reader) checkLock(d *strict.Document, n *strict.Node, path, name string) {
	if name != "" && !r.declared("lock", name) {
		d.Fail(n, path, "no lock %q is declared", name)
	}
}
