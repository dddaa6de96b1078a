package definition

import (
	"errors"
	"strings"

	"github.com/millrace/millrace/shared/strict"
)

const (
	// maxGraphBytes is how large the JSON of a graph may be, so that it fits into one item of the store.
	maxGraphBytes = 256 << 10
	// maxAllNodes bounds the work of checking how large the graphs are.
	maxAllNodes = 100_000
)

// checkNested checks what chains say of each other: that nested ones are declared, that none goes through itself, and that each, with
// all that are nested in it, is small enough and has no loop without a way out.
func (r *reader) checkNested(d *strict.Document) {
	chains := map[string]*JobChain{}
	for i := range r.set.JobChains {
		chains[r.set.JobChains[i].Path] = &r.set.JobChains[i]
	}
	nested := map[string][]reference{}
	for _, c := range r.chains {
		nested[c.place.to] = c.nested
		for _, ref := range c.nested {
			if chain, ok := chains[ref.to]; !ok {
				d.Fail(ref.node, ref.path, "no job chain %q is declared", ref.to)
			} else if len(chain.Nodes) > 0 && chain.Nodes[0].kind() == KindEnd {
				d.Fail(ref.node, ref.path, "the job chain %s begins with an end, so that nothing happens in it", ref.to)
			}
		}
	}
	done := map[string]bool{}
	for _, c := range r.chains {
		checkRounds(d, nested, c.place.to, done)
	}
	if d.OK() {
		r.checkGraphs(d, chains)
	}
}

// checkRounds refuses references from a chain, or those below it, to a chain around. The chains in done are true if they have been
// checked, and false if they are around.
func checkRounds(d *strict.Document, nested map[string][]reference, path string, done map[string]bool) {
	if _, seen := done[path]; seen {
		return
	}
	done[path] = false
	for _, ref := range nested[path] {
		if checked, seen := done[ref.to]; seen && !checked {
			d.Fail(ref.node, ref.path, "the job chain %s goes through itself", ref.to)
		}
		checkRounds(d, nested, ref.to, done)
	}
	done[path] = true
}

// checkGraphs refuses chains whose graphs are too large, and those with a loop that a nested chain does not leave, since it never ends
// as the way out needs.
func (r *reader) checkGraphs(d *strict.Document, chains map[string]*JobChain) {
	nodes := 0
	for _, c := range r.chains {
		at := c.place
		g, err := compile(chains, at.to)
		switch {
		case errors.Is(err, errManyNodes) || err == nil && len(g.JSON()) > maxGraphBytes:
			d.Fail(at.node, at.path, "too large with the chains that are nested in it: at most %d nodes, and %d bytes of JSON", maxGraphNodes, maxGraphBytes)
		case err != nil:
			d.Fail(at.node, at.path, "%v", err)
		default:
			nodes += len(g.Nodes)
			if caught := g.caught(); len(caught) > 0 {
				d.Fail(at.node, at.path, "no way leads to an end from %s: no nested chain there ends as it would need", strings.Join(caught, ", "))
			}
		}
		if nodes > maxAllNodes {
			d.Fail(at.node, at.path, "the job chains have more than %d nodes, each with those nested in it", maxAllNodes)
			return
		}
	}
}
