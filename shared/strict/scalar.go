package strict

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/millrace/millrace/shared/event"
)

// The types of JSON's scalars. A plain scalar of YAML is read as whatever type is wanted.
const (
	textTag    = "!!str"
	numberTag  = "!!float"
	booleanTag = "!!bool"
	nullTag    = "!!null"
)

// scalar returns the text of a scalar that is not empty; in JSON it must have one of the types.
func (d *Document) scalar(n *Node, path, want string, types ...string) string {
	n = resolve(n)
	if n.Kind != yaml.ScalarNode || n.ShortTag() == nullTag || n.Value == "" || d.json && !slices.Contains(types, n.Tag) {
		d.Fail(n, path, "want %s", want)
		return ""
	}
	return n.Value
}

// Text reads a text that is not empty. In YAML a plain number or boolean is a text too.
func (d *Document) Text(n *Node, path string) string { return d.scalar(n, path, "a text", textTag) }

// Word reads a text, which may be empty if it is in quotes.
func (d *Document) Word(n *Node, path string) string {
	if n = resolve(n); n.Kind == yaml.ScalarNode && n.Value == "" && n.ShortTag() == textTag {
		return ""
	}
	return d.Text(n, path)
}

// OneOf reads one of these words; "" is returned with a mistake.
func (d *Document) OneOf(n *Node, path string, words ...string) string {
	text := d.Text(n, path)
	for _, word := range words {
		if text == word {
			return text
		}
	}
	if text != "" {
		d.Fail(n, path, "%q is none of %s", text, strings.Join(words, ", "))
	}
	return ""
}

// Count reads an integer from 1 to the largest int64.
func (d *Document) Count(n *Node, path string) int64 {
	text := d.scalar(n, path, "a number", numberTag)
	number, ok := integer(text)
	if text != "" && (!ok || number < 1) {
		d.Fail(n, path, "%q is not an integer from 1", text)
	}
	return number
}

// Integer reads an integer of at most 32 bits with sign.
func (d *Document) Integer(n *Node, path string) (number int, ok bool) {
	text := d.scalar(n, path, "a number", numberTag)
	if text == "" {
		return 0, false
	}
	read, ok := integer(text)
	if !ok || int64(int32(read)) != read {
		d.Fail(n, path, "%q is not an integer", text)
		return 0, false
	}
	return int(read), true
}

// Number reads a finite number above zero.
func (d *Document) Number(n *Node, path string) float64 {
	text := d.scalar(n, path, "a number", numberTag)
	number, err := strconv.ParseFloat(text, 64)
	if text != "" && (err != nil || !(number > 0) || math.IsInf(number, 0)) {
		d.Fail(n, path, "%q is not a number above 0", text)
		return 0
	}
	return number
}

func integer(text string) (int64, bool) {
	number, err := strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 10, 64)
	return number, err == nil
}

// Boolean reads true or false.
func (d *Document) Boolean(n *Node, path string) bool {
	text := d.scalar(n, path, "true or false", booleanTag)
	if text != "" && text != "true" && text != "false" {
		d.Fail(n, path, "%q is neither true nor false", text)
	}
	return text == "true"
}

// Duration reads a duration above zero, in a form of [event.ParseDuration].
func (d *Document) Duration(n *Node, path string) time.Duration {
	length, ok := d.Length(n, path)
	if ok && length == 0 {
		d.Fail(n, path, "want more than 0")
	}
	return length
}

// Length reads a duration that may be zero, in a form of [event.ParseDuration].
func (d *Document) Length(n *Node, path string) (length time.Duration, ok bool) {
	text := d.scalar(n, path, "a duration", textTag, numberTag)
	if text == "" {
		return 0, false
	}
	length, err := event.ParseDuration(text)
	if err != nil {
		d.Fail(n, path, "%v", err)
		return 0, false
	}
	return length, true
}
