package definition_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/millrace/millrace/shared/definition"
)

// drawNodes draws a list of nodes that name each other at random, as in a document.
func drawNodes(t *rapid.T, prefix string, depth int, chains []string) string {
	n := rapid.IntRange(1, 4).Draw(t, "nodes")
	ref := func() string { return fmt.Sprintf("%s%d", prefix, rapid.IntRange(0, n-1).Draw(t, "ref")) }
	maybe := func(format string) string {
		if rapid.Bool().Draw(t, "given") {
			return ""
		}
		return fmt.Sprintf(format, ref())
	}
	kinds := []string{"job", "end", "prompt", "wait"}
	if depth < 2 {
		kinds = append(kinds, "fork")
	}
	if len(chains) > 0 {
		kinds = append(kinds, "chain")
	}
	var all []string
	for i := range n {
		id := fmt.Sprintf("%s%d", prefix, i)
		text := "{id: " + id
		switch rapid.SampledFrom(kinds).Draw(t, "kind") {
		case "job":
			text += ", job: /j" + maybe(", next: %s") + maybe(", error: %s") + maybe(", on: {1..3: %s}")
		case "prompt":
			text += ", prompt: {role: admin, answers: {yes: " + ref() + ", no: " + ref() + "}}"
		case "wait":
			text += ", wait: {event: X}" + maybe(", next: %s") + maybe(", error: %s")
		case "fork":
			text += ", fork: {branches: {x: [" + drawNodes(t, id+"x", depth+1, chains) + "], y: [" + drawNodes(t, id+"y", depth+1, chains) + "]}}" + maybe(", error: %s")
		case "chain":
			text += ", chain: " + rapid.SampledFrom(chains).Draw(t, "chain") + maybe(", next: %s") + maybe(", error: %s")
		}
		all = append(all, text+"}")
	}
	return strings.Join(all, ", ")
}

// Every set that is taken has graphs that are whole, and no order is caught in a loop.
func TestGraphsOfAnyChains(t *testing.T) {
	t.Parallel()
	taken := 0
	rapid.Check(t, func(rt *rapid.T) {
		var chains, texts []string
		for i := range 3 {
			path := fmt.Sprintf("/c%d", i)
			texts = append(texts, "{path: "+path+", nodes: ["+drawNodes(rt, "n", 0, chains)+"]}")
			chains = append(chains, path)
			set, err := definition.Read("f", []byte("job_chains: ["+strings.Join(texts, ", ")+"]"))
			if err != nil {
				texts, chains = texts[:len(texts)-1], chains[:len(chains)-1]
				continue
			}
			taken++
			checkGraphs(t, set)
			checkWaysOut(rt, set, path)
		}
	})
	if taken == 0 {
		t.Error("no set was taken")
	}
}

// checkWaysOut checks that from each node of a graph a way leads to an end, of the order or of the fork's child.
func checkWaysOut(t *rapid.T, set *definition.Set, path string) {
	g, err := set.Graph(path)
	if err != nil {
		t.Fatal(err)
	}
	leaves := map[string]bool{}
	for range g.Nodes { // each round finds those that are one way further from an end
		for i := range g.Nodes {
			n := &g.Nodes[i]
			leaves[n.ID] = leaves[n.ID] || n.Kind == definition.KindEnd || n.Kind != definition.KindPrompt && n.Next == ""
			ways := named(n)
			if n.Fork != nil {
				ways = []string{n.Next, n.Error}
			}
			for _, to := range ways {
				leaves[n.ID] = leaves[n.ID] || leaves[to]
			}
		}
	}
	for _, n := range g.Nodes {
		if !leaves[n.ID] {
			t.Errorf("no way leads out from %s of %s", n.ID, g.JSON())
		}
	}
}
