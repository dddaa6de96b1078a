package chaingraph

import (
	"fmt"
	"strings"

	"github.com/millrace/millrace/shared/definition"
)

// Mermaid returns the chain as a flowchart in Mermaid's language. The nodes of each branch of a fork are in a box of their own; ways
// after errors are dotted.
func Mermaid(g *definition.Graph) string {
	m := &mermaid{graph: g, names: map[string]string{}}
	for i := range g.Nodes {
		m.names[g.Nodes[i].ID] = fmt.Sprintf("n%d", i+1) // ids may hold what Mermaid has other uses for
	}
	m.line(0, "flowchart TD")
	for at := 0; at < len(g.Nodes); {
		at = m.node(1, at)
	}
	for i := range g.Nodes {
		m.ways(&g.Nodes[i])
	}
	if m.ended {
		m.line(1, `done(["end"])`)
	}
	return m.text.String()
}

// mermaid is the state while a chart is written.
type mermaid struct {
	graph *definition.Graph
	names map[string]string // of nodes in the chart, by id
	text  strings.Builder
	ended bool // an order is at its end behind a node that is no end
}

func (m *mermaid) line(depth int, format string, args ...any) {
	m.text.WriteString(strings.Repeat("    ", depth) + fmt.Sprintf(format, args...) + "\n")
}

// shapes are the brackets around a node's label.
var shapes = map[definition.Kind][2]string{
	definition.KindJob: {"[", "]"}, definition.KindEnd: {"([", "])"}, definition.KindFork: {"{{", "}}"},
	definition.KindPrompt: {"{", "}"}, definition.KindWait: {"[/", "/]"},
}

// node writes a node, and the boxes of its children, and returns the place of the node after these.
func (m *mermaid) node(depth, at int) (next int) {
	n := &m.graph.Nodes[at]
	label := quoted(n.ID)
	if n.Kind != definition.KindEnd { // which the shape tells
		for _, said := range append([]string{doing(n)}, details(n)...) {
			label += "<br/>" + quoted(said)
		}
	}
	shape := shapes[n.Kind]
	m.line(depth, `%s%s"%s"%s`, m.names[n.ID], shape[0], label, shape[1])
	if n.Fork == nil {
		return at + 1
	}
	at++
	if n.Fork.Each != "" {
		return m.box(depth, at, n, m.names[n.ID]+"e", "each of "+n.Fork.Each, "")
	}
	for i := range n.Fork.Branches {
		until := ""
		if i+1 < len(n.Fork.Branches) {
			until = n.Fork.Branches[i+1].Node
		}
		at = m.box(depth, at, n, fmt.Sprintf("%sb%d", m.names[n.ID], i+1), n.Fork.Branches[i].Name, until)
	}
	return at
}

// box writes the children of a fork from a place on, up to the node until, in a box.
func (m *mermaid) box(depth, at int, fork *definition.GraphNode, name, title, until string) (next int) {
	m.line(depth, `subgraph %s["%s"]`, name, quoted(title))
	for at < len(m.graph.Nodes) && m.graph.Nodes[at].ChildOf == fork.ID && m.graph.Nodes[at].ID != until {
		at = m.node(depth+1, at)
	}
	m.line(depth, "end")
	return at
}

// ways writes the ways on from a node. A child that is joined has none.
func (m *mermaid) ways(n *definition.GraphNode) {
	name := m.names[n.ID]
	if n.Fork != nil {
		for _, b := range n.Fork.Branches {
			m.line(1, "%s --> %s", name, m.names[b.Node])
		}
		if n.Fork.Node != "" {
			m.line(1, "%s --> %s", name, m.names[n.Fork.Node])
		}
	}
	for _, w := range ways(n) {
		to, label := m.names[w.to], w.label
		switch {
		case w.to == "" && (w.error || n.ChildOf != ""):
			continue
		case w.to == "":
			to, m.ended = "done", true
		}
		if n.Fork != nil && label == "" {
			label = "joined"
		}
		if w.setsBack {
			label += " after setbacks"
		}
		arrow := "-->"
		if w.error {
			arrow = "-.->"
		}
		if label != "" {
			arrow += `|"` + quoted(label) + `"|`
		}
		m.line(1, "%s %s %s", name, arrow, to)
	}
}

// codesOf are the characters that mean something in Mermaid's labels, as it writes them literally.
var codesOf = strings.NewReplacer(
	`"`, "#quot;", "#", "#35;", "&", "#amp;", "<", "#lt;", ">", "#gt;", "`", "#96;", "%", "#37;",
)

// quoted returns the text for a label in quotes.
func quoted(text string) string { return codesOf.Replace(plain(text)) }
