package strict

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"

	"github.com/millrace/millrace/shared/event"
)

// fromJSON returns the node tree of a text that is valid JSON.
func fromJSON(text []byte) *Node {
	t := tree{decoder: jsontext.NewDecoder(bytes.NewReader(text)), text: text, line: 1}
	return t.value()
}

// tree builds nodes from the tokens of a decoder.
type tree struct {
	decoder *jsontext.Decoder
	text    []byte
	read    int // up to where in text the lines are counted
	line    int
}

func (t *tree) value() *Node {
	token, err := t.decoder.ReadToken()
	if err != nil {
		panic(err) // the text is valid
	}
	end := int(t.decoder.InputOffset())
	t.line += bytes.Count(t.text[t.read:end], []byte("\n"))
	t.read = end
	n := &Node{Kind: yaml.ScalarNode, Line: t.line, Value: token.String()}
	switch token.Kind() {
	case '{':
		t.fill(n, yaml.MappingNode, '}')
	case '[':
		t.fill(n, yaml.SequenceNode, ']')
	case '"':
		n.Tag = textTag
	case '0':
		n.Tag = numberTag
	case 'n':
		n.Tag = nullTag
	default:
		n.Tag = booleanTag
	}
	return n
}

func (t *tree) fill(n *Node, kind yaml.Kind, end jsontext.Kind) {
	n.Kind, n.Value = kind, ""
	for t.decoder.PeekKind() != end {
		n.Content = append(n.Content, t.value())
	}
	_, _ = t.decoder.ReadToken() // the closing bracket
}

// deeper is the message about a value of more levels than [event.MaxDepth].
var deeper = fmt.Sprintf("is nested deeper than %d levels", event.MaxDepth)

// JSON returns a value of any shape as compact JSON, its members in their order, of at most most bytes; nil if there is a
// mistake.
func (d *Document) JSON(n *Node, path string, most int) json.RawMessage {
	w := &writer{document: d, path: path, most: most}
	w.value(n, 0)
	if w.failed {
		return nil
	}
	return w.bytes
}

// writer renders a node as JSON.
type writer struct {
	document *Document
	path     string
	most     int
	bytes    []byte
	failed   bool
}

func (w *writer) tooLarge(n *Node) {
	message := fmt.Sprintf("more than %d bytes", w.most)
	w.document.mistakes = append(w.document.mistakes, Mistake{Line: n.Line, Path: w.path, Message: message, TooLarge: true})
	w.failed = true
}

func (w *writer) fail(n *Node, format string, args ...any) {
	if !w.failed {
		w.document.Fail(n, w.path, format, args...)
	}
	w.failed = true
}

func (w *writer) value(n *Node, depth int) {
	n = resolve(n)
	switch {
	case w.failed:
	case depth == event.MaxDepth && n.Kind != yaml.ScalarNode:
		w.fail(n, "%s", deeper)
	case len(w.bytes) > w.most:
		w.tooLarge(n)
	case n.Kind == yaml.MappingNode:
		w.object(n, depth)
	case n.Kind == yaml.SequenceNode:
		w.list(n, depth)
	default:
		w.scalar(n)
	}
	if depth == 0 && !w.failed && len(w.bytes) > w.most {
		w.tooLarge(n)
	}
}

func (w *writer) object(n *Node, depth int) {
	seen := map[string]bool{}
	w.bytes = append(w.bytes, '{')
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := resolve(n.Content[i])
		switch {
		case key.Kind != yaml.ScalarNode:
			w.fail(key, "want a text before the colon")
		case key.ShortTag() == "!!merge":
			w.fail(key, "merge keys are not taken")
		case seen[key.Value]:
			w.fail(key, "%q is given twice", key.Value)
		}
		if w.failed {
			return
		}
		seen[key.Value] = true
		w.comma(i > 0)
		w.text(key)
		w.bytes = append(w.bytes, ':')
		w.value(n.Content[i+1], depth+1)
	}
	w.bytes = append(w.bytes, '}')
}

func (w *writer) list(n *Node, depth int) {
	w.bytes = append(w.bytes, '[')
	for i, element := range n.Content {
		if w.failed {
			return
		}
		w.comma(i > 0)
		w.value(element, depth+1)
	}
	w.bytes = append(w.bytes, ']')
}

func (w *writer) comma(needed bool) {
	if needed {
		w.bytes = append(w.bytes, ',')
	}
}

func (w *writer) scalar(n *Node) {
	switch n.ShortTag() {
	case nullTag:
		w.bytes = append(w.bytes, "null"...)
	case booleanTag:
		w.bytes = append(w.bytes, strings.ToLower(n.Value)...)
	case "!!int", numberTag:
		w.number(n)
	default:
		w.text(n)
	}
}

// number copies the digits of a number that is valid JSON, so that none is lost.
func (w *writer) number(n *Node) {
	if v := jsontext.Value(n.Value); v.Kind() == '0' && v.IsValid() {
		w.bytes = append(w.bytes, n.Value...)
		return
	}
	var number any
	if err := n.Decode(&number); err != nil {
		w.fail(n, "%q is no number", n.Value)
		return
	}
	if f, ok := number.(float64); ok && (math.IsInf(f, 0) || math.IsNaN(f)) {
		w.fail(n, "JSON has no number %s", n.Value)
		return
	}
	text, err := json.Marshal(number)
	if err != nil {
		w.fail(n, "%q is no number", n.Value)
		return
	}
	w.bytes = append(w.bytes, text...)
}

func (w *writer) text(n *Node) {
	quoted, err := jsontext.AppendQuote(w.bytes, n.Value)
	if err != nil {
		w.fail(n, "not UTF-8")
		return
	}
	w.bytes = quoted
}
