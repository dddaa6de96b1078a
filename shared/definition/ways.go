package definition

import (
	"maps"
	"slices"
	"strings"

	"github.com/millrace/millrace/shared/strict"
)

// check checks a list as a whole: that its nodes name nodes of the list, that orders can get to each of them, and out of each loop.
// Prefix begins the ids of nodes that have none of their own.
func (l *nodeList) check(d *strict.Document, prefix string) {
	places := map[string]int{}
	for i := range l.stations {
		s := &l.stations[i]
		s.place.to = l.nodes[i].ID
		if l.inBranch {
			s.place.to = nodeID(l.nodes[i].ID, prefix, i)
		}
		if _, s.twice = places[s.place.to]; !s.twice {
			places[s.place.to] = i
		}
	}
	for i := range l.stations {
		l.stations[i].checkRefs(d, l, places)
	}
	if 0 < len(l.nodes) && len(l.nodes) <= maxGraphNodes {
		w := l.ways(places)
		l.checkReached(d, w)
		l.checkLoops(d, w)
	}
	for i := range l.stations {
		s := &l.stations[i]
		for _, name := range slices.Sorted(maps.Keys(s.branches)) {
			s.branches[name].check(d, s.place.to+"/"+name+"/")
		}
	}
}

// checkRefs refuses names of nodes that are not in the list.
func (s *station) checkRefs(d *strict.Document, l *nodeList, places map[string]int) {
	for _, ref := range s.refs {
		_, known := places[ref.to]
		switch {
		case ref.to == "" || known: // the reader of the name has reported what is empty
		case l.chain.ids[ref.to]:
			d.Fail(ref.node, ref.path, "the node %q is in another branch, or outside of this one: no way leads from a branch to other nodes", ref.to)
		default:
			d.Fail(ref.node, ref.path, "the chain has no node %q", ref.to)
		}
	}
}

// ways are the ways between the nodes of a list.
type ways struct {
	from  [][]int // nodes that follow, by node
	ended []bool  // by node: it is an end, or leads to the list's end, or to a place that is not known
}

func (l *nodeList) ways(places map[string]int) ways {
	w := ways{make([][]int, len(l.stations)), make([]bool, len(l.stations))}
	for i := range l.stations {
		s := &l.stations[i]
		w.ended[i] = s.kind == KindEnd
		for _, ref := range s.refs {
			if to, known := places[ref.to]; known {
				w.from[i] = append(w.from[i], to)
			} else {
				w.ended[i] = true
			}
		}
		switch {
		case s.onward || s.kind == KindEnd || s.kind == KindPrompt:
		case i+1 < len(l.stations):
			w.from[i] = append(w.from[i], i+1)
		default:
			w.ended[i] = true
		}
	}
	return w
}

// reach returns which nodes can be reached from some; those themselves only by a loop.
func (w *ways) reach(from ...int) []bool {
	reached := make([]bool, len(w.from))
	for next := from; len(next) > 0; {
		at := next[len(next)-1]
		next = next[:len(next)-1]
		for _, to := range w.from[at] {
			if !reached[to] {
				reached[to] = true
				next = append(next, to)
			}
		}
	}
	return reached
}

// checkReached refuses nodes that orders never get to from the first one. Those whose ids are missing or given twice count as
// reached, since that mistake has been reported.
func (l *nodeList) checkReached(d *strict.Document, w ways) {
	from := []int{0}
	for i := range l.stations {
		if s := &l.stations[i]; s.twice || s.place.to == "" {
			from = append(from, i)
		}
	}
	reached := w.reach(slices.Clone(from)...)
	for i := range reached {
		if s := &l.stations[i]; !reached[i] && !slices.Contains(from, i) {
			d.Fail(s.place.node, s.place.path, "no way leads to the node %s", s.place.to)
		}
	}
}

// checkLoops refuses loops from which no way leads to an end. It names each loop once, at its first node.
func (l *nodeList) checkLoops(d *strict.Document, w ways) {
	captive := map[int][]bool{} // nodes from which no way leads to an end, with the nodes that they reach
	for i, leaves := range w.leaving() {
		if !leaves {
			captive[i] = w.reach(i)
		}
	}
	for _, i := range slices.Sorted(maps.Keys(captive)) {
		var loop []string
		first, closed := true, true
		for to, there := range captive[i] {
			if there {
				loop = append(loop, l.stations[to].place.to)
				first = first && to >= i
				closed = closed && captive[to][i]
			}
		}
		if first && closed {
			s := &l.stations[i]
			d.Fail(s.place.node, s.place.path, "no way leads to an end from the loop of %s", strings.Join(loop, ", "))
		}
	}
}

// leaving returns by node whether a way leads from it to an end.
func (w *ways) leaving() []bool {
	before := make([][]int, len(w.from)) // by node, those that lead to it
	for i, next := range w.from {
		for _, to := range next {
			before[to] = append(before[to], i)
		}
	}
	leaving, at := slices.Clone(w.ended), []int(nil)
	for i, ended := range w.ended {
		if ended {
			at = append(at, i)
		}
	}
	for len(at) > 0 {
		last := at[len(at)-1]
		at = at[:len(at)-1]
		for _, i := range before[last] {
			if !leaving[i] {
				leaving[i] = true
				at = append(at, i)
			}
		}
	}
	return leaving
}

// caught returns the ids of the nodes from which no way leads to an end.
func (g *Graph) caught() []string {
	w := ways{make([][]int, len(g.Nodes)), make([]bool, len(g.Nodes))}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		w.ended[i] = n.Kind == KindEnd || n.Kind != KindPrompt && n.Next == ""
		n.onward(func(id *string) {
			if *id != "" {
				w.from[i] = append(w.from[i], g.places[*id])
			}
		})
	}
	var caught []string
	for i, leaves := range w.leaving() {
		if !leaves {
			caught = append(caught, g.Nodes[i].ID)
		}
	}
	return caught
}
