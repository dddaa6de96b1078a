package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/millrace/millrace/shared/event"
)

// document is a YAML text being read, and the mistakes found in it so far.
type document struct {
	name     string // of the file or variable, for messages
	mistakes []error
}

// visit takes a node; path says where in the document it is, such as journal.retention.
type visit func(d *document, n *yaml.Node, path string)

// fields are the keys that an object may have.
type fields map[string]visit

// read takes one YAML document, which may be empty. The error has a line for each mistake.
func read(name string, text []byte, root visit) error {
	d := &document{name: name}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var n, more yaml.Node
	switch err := decoder.Decode(&n); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return fmt.Errorf("config: %s: %w", name, err)
	}
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		return fmt.Errorf("config: %s: want one YAML document, found more", name)
	}
	root(d, n.Content[0], "")
	return errors.Join(d.mistakes...)
}

// fail notes a mistake at a node.
func (d *document) fail(n *yaml.Node, path, format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	if path != "" {
		what = path + ": " + what
	}
	d.mistakes = append(d.mistakes, fmt.Errorf("config: %s:%d: %s", d.name, n.Line, what))
}

// ok reports whether no mistake was found yet.
func (d *document) ok() bool { return len(d.mistakes) == 0 }

// object visits the fields of a mapping; those that it may not have, or has twice, are mistakes.
func (d *document) object(n *yaml.Node, path string, may fields) {
	if n = resolve(n); n.Kind != yaml.MappingNode {
		d.fail(n, path, "want fields (%s)", known(may))
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		at := strings.TrimPrefix(path+"."+key.Value, ".")
		switch {
		case may[key.Value] == nil:
			d.fail(key, at, "unknown, want one of %s", known(may))
		case seen[key.Value]:
			d.fail(key, at, "given twice")
		default:
			may[key.Value](d, value, at)
		}
		seen[key.Value] = true
	}
}

func known(may fields) string { return strings.Join(slices.Sorted(maps.Keys(may)), ", ") }

func (d *document) list(n *yaml.Node, path string) []*yaml.Node {
	if n = resolve(n); n.Kind != yaml.SequenceNode {
		d.fail(n, path, "want a list")
		return nil
	}
	return n.Content
}

func (d *document) text(n *yaml.Node, path string) string {
	if n = resolve(n); n.Kind != yaml.ScalarNode || n.Tag == "!!null" || n.Value == "" {
		d.fail(n, path, "want a text")
		return ""
	}
	return n.Value
}

// count reads an integer from 1.
func (d *document) count(n *yaml.Node, path string) int64 {
	text := d.text(n, path)
	number, err := strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 10, 64)
	if text != "" && (err != nil || number < 1) {
		d.fail(n, path, "%q is not an integer from 1", text)
	}
	return number
}

func (d *document) boolean(n *yaml.Node, path string) bool {
	text := d.text(n, path)
	if text != "" && text != "true" && text != "false" {
		d.fail(n, path, "%q is neither true nor false", text)
	}
	return text == "true"
}

// duration reads a duration above zero.
func (d *document) duration(n *yaml.Node, path string) time.Duration {
	text := d.text(n, path)
	if text == "" {
		return 0
	}
	length, err := event.ParseDuration(text)
	switch {
	case err != nil:
		d.fail(n, path, "%v", err)
	case length == 0:
		d.fail(n, path, "want more than 0")
	}
	return length
}

// resolve follows an alias to what it stands for.
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}
