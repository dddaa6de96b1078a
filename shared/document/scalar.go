package document

import (
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/millrace/millrace/shared/event"
)

// Text reads a text that is not empty. What looks like a number or a truth value is a text too.
func (d *Document) Text(n *Node, path string) string {
	if n = resolve(n); n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" || n.Value == "" {
		d.Fail(n, path, "want a text")
		return ""
	}
	return n.Value
}

// Word reads a text that may be empty, where it is in quotes.
func (d *Document) Word(n *Node, path string) string {
	if n = resolve(n); n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
		d.Fail(n, path, "want a text")
		return ""
	}
	return n.Value
}

// OneOf reads one of these words.
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

// Count reads an integer from 1.
func (d *Document) Count(n *Node, path string) int64 {
	text := d.Text(n, path)
	number, ok := integer(text)
	if text != "" && (!ok || number < 1) {
		d.Fail(n, path, "%q is not an integer from 1", text)
	}
	return number
}

// Integer reads an integer of at most 32 bits.
func (d *Document) Integer(n *Node, path string) (number int, ok bool) {
	text := d.Text(n, path)
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

func integer(text string) (int64, bool) {
	number, err := strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 10, 64)
	return number, err == nil
}

// Boolean reads true or false.
func (d *Document) Boolean(n *Node, path string) bool {
	text := d.Text(n, path)
	if text != "" && text != "true" && text != "false" {
		d.Fail(n, path, "%q is neither true nor false", text)
	}
	return text == "true"
}

// Duration reads a duration above zero, as [event.ParseDuration] takes it.
func (d *Document) Duration(n *Node, path string) time.Duration {
	length, ok := d.Length(n, path)
	if ok && length == 0 {
		d.Fail(n, path, "want more than 0")
	}
	return length
}

// Length reads a duration that may be zero.
func (d *Document) Length(n *Node, path string) (length time.Duration, ok bool) {
	text := d.Text(n, path)
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
