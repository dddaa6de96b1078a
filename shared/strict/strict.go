package strict

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"
)

// Node is a value in a document, with its line.
type Node = yaml.Node

// Visit reads a node; path is its place in the document, such as journal.retention or tokens[2].name.
type Visit func(d *Document, n *Node, path string)

// Fields are the keys that an object may have, each with the function that reads its value.
type Fields map[string]Visit

// Document is a text that is being read, with the mistakes found so far.
type Document struct {
	json     bool // the text is JSON, so that scalars have types
	mistakes []Mistake
	visited  int
}

// maxVisits bounds the work that a small text can cause by aliases of aliases.
const maxVisits = 1_000_000

// Read reads one document in YAML or JSON; name is that of its file or variable, for messages. It calls root with the
// document's root, unless the text is empty. The error is an [*Error].
func Read(name string, text []byte, root Visit) error {
	d := &Document{json: jsontext.Value(text).IsValid()}
	n, err := parse(text, d.json)
	if err != nil {
		return &Error{Name: name, Mistakes: []Mistake{*err}}
	}
	if n != nil {
		root(d, n, "")
	}
	if len(d.mistakes) > 0 {
		slices.SortStableFunc(d.mistakes, func(a, b Mistake) int { return a.Line - b.Line })
		return &Error{Name: name, Mistakes: d.mistakes}
	}
	return nil
}

// parse returns the root of the document, or nil if there is none.
func parse(text []byte, isJSON bool) (*Node, *Mistake) {
	if isJSON {
		return fromJSON(text), nil // YAML lacks some of JSON's escapes
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var n, more Node
	switch err := decoder.Decode(&n); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, unreadable(err)
	}
	switch err := decoder.Decode(&more); {
	case errors.Is(err, io.EOF):
		return n.Content[0], nil
	case err != nil:
		return nil, unreadable(err)
	}
	return nil, &Mistake{Line: more.Line, Message: "want one YAML document, found more"}
}

// ofLine matches the beginning of the YAML parser's errors, with the line.
var ofLine = regexp.MustCompile(`^yaml: line (\d+): `)

func unreadable(err error) *Mistake {
	m := &Mistake{Line: 1, Message: strings.TrimPrefix(err.Error(), "yaml: ")}
	if found := ofLine.FindStringSubmatch(err.Error()); found != nil {
		m.Line, _ = strconv.Atoi(found[1]) // digits
		m.Message = strings.TrimPrefix(err.Error(), found[0])
	}
	if strings.HasPrefix(m.Message, "exceeded max depth") {
		m.Message = deeper // the parser's own limit lies beyond event.MaxDepth
		return m
	}
	m.Message = "not YAML: " + m.Message
	return m
}

// Fail records a mistake at a node.
func (d *Document) Fail(n *Node, path, format string, args ...any) {
	d.mistakes = append(d.mistakes, Mistake{Line: n.Line, Path: path, Message: fmt.Sprintf(format, args...)})
}

// OK reports whether no mistake has been found yet.
func (d *Document) OK() bool { return len(d.mistakes) == 0 }

// enter counts a visit; it returns false after maxVisits.
func (d *Document) enter(n *Node, path string) bool {
	d.visited++
	if d.visited == maxVisits {
		d.Fail(n, path, "the document is too large with all its aliases")
	}
	return d.visited < maxVisits
}

// Object visits the fields of a mapping; a field that is not in may, or is given twice, is a mistake.
func (d *Document) Object(n *Node, path string, may Fields) {
	d.entries(n, path, func() string { return known(may) }, func(key, value *Node, at string) {
		visit := may[key.Value]
		if visit == nil {
			d.Fail(key, at, "unknown, want one of %s", known(may))
			return
		}
		visit(d, value, at)
	})
}

// Map visits the entries of a mapping whose keys are names of the document's own choice; a name given twice is a mistake.
// Names describes the keys in the message for a node that is no mapping.
func (d *Document) Map(n *Node, path, names string, each func(key, value *Node, at string)) {
	d.entries(n, path, func() string { return names }, each)
}

func (d *Document) entries(n *Node, path string, names func() string, each func(key, value *Node, at string)) {
	if n = resolve(n); n.Kind != yaml.MappingNode {
		d.Fail(n, path, "want fields (%s)", names())
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := resolve(n.Content[i]), n.Content[i+1]
		at := strings.TrimPrefix(path+"."+key.Value, ".")
		switch {
		case !d.enter(key, path):
			return
		case key.Kind != yaml.ScalarNode:
			d.Fail(key, path, "want a text before the colon")
		case seen[key.Value]:
			d.Fail(key, at, "given twice")
		default:
			each(key, value, at)
		}
		seen[key.Value] = true
	}
}

func known(may Fields) string { return strings.Join(slices.Sorted(maps.Keys(may)), ", ") }

// List visits the elements of a sequence.
func (d *Document) List(n *Node, path string, each Visit) {
	if n = resolve(n); n.Kind != yaml.SequenceNode {
		d.Fail(n, path, "want a list")
		return
	}
	for i, element := range n.Content {
		if !d.enter(element, path) {
			return
		}
		each(d, element, path+"["+strconv.Itoa(i)+"]")
	}
}

// resolve returns the node that an alias refers to; of other nodes, the node itself.
func resolve(n *Node) *Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// IsObject reports whether a node is a mapping.
func IsObject(n *Node) bool { return resolve(n).Kind == yaml.MappingNode }

// Members returns the values of a mapping by their keys; of other nodes, nothing.
func Members(n *Node) map[string]*Node {
	if n = resolve(n); n.Kind != yaml.MappingNode {
		return nil
	}
	members := make(map[string]*Node, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		members[resolve(n.Content[i]).Value] = n.Content[i+1]
	}
	return members
}

// Need records a mistake for each of the keys that a mapping lacks. It ignores nodes that are no mapping, which Object or
// Map has reported.
func (d *Document) Need(n *Node, path string, keys ...string) {
	if n = resolve(n); n.Kind != yaml.MappingNode {
		return
	}
	given := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		given[resolve(n.Content[i]).Value] = true
	}
	for _, key := range keys {
		if !given[key] {
			d.Fail(n, strings.TrimPrefix(path+"."+key, "."), "is missing")
		}
	}
}
