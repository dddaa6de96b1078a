package chaingraph

import (
	"strings"

	"github.com/millrace/millrace/shared/definition"
)

// Text returns the chain as lines of text: each node with what happens there, and below it the ways on from it. The nodes of a fork's
// children are indented below the fork.
func Text(g *definition.Graph) string {
	var b strings.Builder
	write := func(depth int, words string) { b.WriteString(strings.Repeat("    ", depth) + plain(words) + "\n") }
	write(0, strings.Join(append([]string{g.Chain}, limits(g)...), ", "))
	depths := map[string]int{"": 0} // of children, by their fork
	for i := range g.Nodes {
		n := &g.Nodes[i]
		depth := depths[n.ChildOf] + 1
		depths[n.ID] = depth
		write(depth, strings.Join(append([]string{n.ID + "  " + doing(n)}, details(n)...), ", "))
		for _, w := range ways(n) {
			write(depth+1, w.text(n))
		}
	}
	return b.String()
}

// text returns the way as words.
func (w way) text(n *definition.GraphNode) string {
	text := "→ "
	if w.label != "" {
		text = w.label + " → "
	}
	if w.setsBack {
		text += "set back, then "
	}
	switch {
	case w.to != "":
		return text + w.to
	case w.error && n.ChildOf != "" && n.OnError != definition.ErrorSuspends:
		return text + "failed for the fork"
	case w.error:
		return text + "suspended"
	case n.ChildOf != "":
		return text + "joined"
	default:
		return text + "end"
	}
}

// plain returns the text as one line that a terminal takes literally.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || 0x7f <= r && r < 0xa0 {
			return ' '
		}
		return r
	}, text)
}
