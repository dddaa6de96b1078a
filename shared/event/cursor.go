package event

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// cursor walks over a text that jsontext has found to be valid JSON: UTF-8, names unique. So it needs no errors of its
// own, and allocates only for names with escapes.
type cursor struct {
	text []byte
	at   int

	// depth is the depth of the value taken last: 0 of one that is no object or array, 1 of one without others in it.
	depth int
}

// open returns a cursor before the first value of the text. Where the text is not JSON, it returns an error that says at
// which place, with locations that begin with name.
func open(text []byte, name string) (*cursor, *Error) {
	if !jsontext.Value(text).IsValid() {
		return nil, malformed(text, name)
	}
	return &cursor{text: text}, nil
}

// kind returns the first byte of the next value: one of `{["tfn-0123456789`.
func (c *cursor) kind() byte {
	for c.text[c.at] <= ' ' {
		c.at++
	}
	return c.text[c.at]
}

// enter moves into the object or array that comes next. It reports whether there is a first element; if not, it moves
// behind the object or array.
func (c *cursor) enter() bool {
	c.kind()
	c.at++
	if k := c.kind(); k == '}' || k == ']' {
		c.at++
		return false
	}
	return true
}

// next moves to the next element. It reports whether there is one; if not, it moves behind the object or array.
func (c *cursor) next() bool {
	k := c.kind()
	c.at++
	return k == ','
}

// name takes the name of an object's member and its colon. It returns the name as it is written and unquoted.
func (c *cursor) name() (raw, meant []byte) {
	c.kind()
	raw = c.text[c.at:endOfString(c.text, c.at)]
	c.at += len(raw)
	c.kind()
	c.at++
	return raw, unquote(raw)
}

// value takes the next value and returns it as it is written.
func (c *cursor) value() []byte {
	k, start := c.kind(), c.at
	c.depth = 0
	switch k {
	case '"':
		c.at = endOfString(c.text, start)
	case '{', '[':
		c.at, c.depth = endOfGroup(c.text, start)
	default:
		c.at = endOfWord(c.text, start)
	}
	return c.text[start:c.at]
}

func endOfString(text []byte, at int) int {
	at++
	end := at + bytes.IndexByte(text[at:], '"')
	if bytes.IndexByte(text[at:end], '\\') < 0 {
		return end + 1
	}
	for ; text[at] != '"'; at++ {
		if text[at] == '\\' {
			at++
		}
	}
	return at + 1
}

// endOfGroup returns the end of an object or array, and its depth.
func endOfGroup(text []byte, at int) (end, deepest int) {
	for depth := 0; ; at++ {
		switch text[at] {
		case '"':
			at = endOfString(text, at) - 1
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			if depth--; depth == 0 {
				return at + 1, deepest
			}
		}
	}
}

func endOfWord(text []byte, at int) int {
	for at < len(text) && text[at] > ' ' && text[at] != ',' && text[at] != '}' && text[at] != ']' {
		at++
	}
	return at
}

// appendCompact appends a valid value without the spaces between its tokens; all else stays as it is written.
func appendCompact(dst, value []byte) []byte {
	if value[0] != '{' && value[0] != '[' {
		return append(dst, value...)
	}
	start := 0
	for at := 0; at < len(value); at++ {
		switch {
		case value[at] == '"':
			at = endOfString(value, at) - 1
		case value[at] <= ' ':
			dst = append(dst, value[start:at]...)
			start = at + 1
		}
	}
	return append(dst, value[start:]...)
}

// unquote returns the content of a valid JSON string. It allocates only if there are escapes.
func unquote(raw []byte) []byte {
	inner := raw[1 : len(raw)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return inner
	}
	meant, _ := jsontext.AppendUnquote(nil, raw) // cannot fail: raw is valid
	return meant
}

// kindName names the kind of a value by its first byte.
func kindName(first byte) string {
	switch first {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	default:
		return "a number"
	}
}

// malformed returns an error that says where a text is not what jsontext accepts.
func malformed(text []byte, name string) *Error {
	if len(bytes.TrimSpace(text)) == 0 {
		return refuse(Invalid, name, "is empty: JSON is needed")
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(text))
	err := d.SkipValue()
	end := d.InputOffset()
	if err == nil {
		_, err = d.ReadToken()
	}
	syntax, ok := errors.AsType[*jsontext.SyntacticError](err)
	if !ok {
		return refuse(Invalid, name, "has more after the end of its JSON value, "+position(text, end))
	}
	at := name + location(syntax.JSONPointer)
	if problem := DepthProblem(text); problem != "" {
		return refuse(Invalid, at, problem) // the parser has a limit of its own too
	}
	reason := syntax.Err
	if errors.Is(err, io.ErrUnexpectedEOF) {
		reason = errors.New("it ends too early")
	}
	return refuse(Invalid, at, fmt.Sprintf("is not valid JSON, %s: %v", position(text, syntax.ByteOffset), reason))
}

// position says where in a text an offset is: offset, line and column, as an editor shows them.
func position(text []byte, offset int64) string {
	before := text[:min(int(offset), len(text))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := len(before) - bytes.LastIndexByte(before, '\n')
	return fmt.Sprintf("at offset %d (line %d, column %d)", offset, line, column)
}

// location renders a JSON pointer as problems' locations are written, such as "[2].key".
func location(pointer jsontext.Pointer) string {
	var b strings.Builder
	for token := range pointer.Tokens() {
		if _, err := strconv.ParseUint(token, 10, 32); err == nil {
			b.WriteString("[" + token + "]")
		} else {
			b.WriteString("." + shorten(token))
		}
	}
	return shorten(b.String())
}
