package api

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/queue"
)

// This file reads bodies of JSON strictly: whatever is unknown, missing or of the wrong type is refused with its location.

// member is a member that an object may have, and how it is read.
type member struct {
	name     string
	required bool
	read     func(location string, value jsontext.Value) error
}

// parseBody returns the one JSON value that a body is, as a copy.
func parseBody(text []byte) (jsontext.Value, error) {
	value, err := parse(text)
	return value.Clone(), err
}

// parse is parseBody without a copy: the value is part of the text, which a decoder of a bytes.Buffer reads where it is.
func parse(text []byte) (jsontext.Value, error) {
	d := jsontext.NewDecoder(bytes.NewBuffer(text))
	value, err := d.ReadValue()
	if errors.Is(err, io.EOF) {
		return nil, invalid("body", "is empty, want JSON")
	}
	if err == nil {
		_, err = d.ReadToken()
	}
	switch syntax, wrong := errors.AsType[*jsontext.SyntacticError](err); {
	case errors.Is(err, io.EOF):
		return value, nil
	case err == nil:
		return nil, invalid("body", "more than one JSON value")
	case wrong && errors.Is(syntax.Err, jsontext.ErrDuplicateName):
		return nil, invalid("body"+dotted(syntax.JSONPointer), "is there twice")
	case wrong && event.DepthProblem(text) != "":
		return nil, invalid("body"+top(syntax.JSONPointer), "%s", event.DepthProblem(text)) // the parser gives up at some depth too
	default:
		return nil, invalid("body", "is not JSON in UTF-8, or is cut off")
	}
}

// top returns the first step of a JSON pointer in the form of our locations.
func top(p jsontext.Pointer) string {
	for token := range p.Tokens() {
		return dotted(jsontext.Pointer("").AppendToken(token))
	}
	return ""
}

// dotted returns a JSON pointer in the form of our locations.
func dotted(p jsontext.Pointer) string {
	var b strings.Builder
	for token := range p.Tokens() {
		if _, err := strconv.ParseUint(token, 10, 32); err == nil {
			b.WriteString("[" + token + "]")
			continue
		}
		b.WriteString("." + token)
	}
	return b.String()
}

// rereader decodes a value that has been read before: so it is well formed, and whether a name is there twice was found out.
type rereader struct {
	jsontext.Decoder
	from bytes.Buffer
}

var rereaders = sync.Pool{New: func() any { return new(rereader) }}

// again returns a decoder of a value, to be given back with done. What it reads is part of the value.
func again(value jsontext.Value) *rereader {
	d, _ := rereaders.Get().(*rereader)
	d.from = *bytes.NewBuffer(value)
	d.Reset(&d.from, jsontext.AllowDuplicateNames(true))
	return d
}

func (d *rereader) done() {
	d.from = bytes.Buffer{}
	rereaders.Put(d)
}

// readObject reads an object that has these members and no others.
func readObject(location string, value jsontext.Value, known ...member) error {
	if value.Kind() != '{' {
		return invalid(location, "want an object, not %s", kindOfJSON(value))
	}
	d := again(value)
	defer d.done()
	_, _ = d.ReadToken()
	var names [16]string
	var text [64]byte
	seen := names[:0]
	for d.PeekKind() == '"' {
		raw, _ := d.ReadValue()
		name, _ := jsontext.AppendUnquote(text[:0], raw)
		value, _ := d.ReadValue()
		i := slices.IndexFunc(known, func(m member) bool { return m.name == string(name) })
		if i < 0 {
			return invalid(location+"."+string(name), "is not known here; known are %s", namesOf(known))
		}
		seen = append(seen, known[i].name)
		if err := known[i].read(location+"."+known[i].name, value); err != nil {
			return err
		}
	}
	for _, m := range known {
		if m.required && !slices.Contains(seen, m.name) {
			return invalid(location+"."+m.name, "is missing")
		}
	}
	return nil
}

func namesOf(known []member) string {
	if len(known) == 0 {
		return "none"
	}
	names := make([]string, len(known))
	for i, m := range known {
		names[i] = m.name
	}
	return strings.Join(names, ", ")
}

// readList reads an array of at least one element and at most that many.
func readList(location string, value jsontext.Value, most int, each func(location string, value jsontext.Value) error) error {
	if value.Kind() != '[' {
		return invalid(location, "want an array, not %s", kindOfJSON(value))
	}
	d := again(value)
	defer d.done()
	_, _ = d.ReadToken()
	n := 0
	for ; d.PeekKind() != ']'; n++ {
		if n == most {
			return invalid(location, "has more than %d elements", most)
		}
		element, _ := d.ReadValue()
		if err := each(location+"["+strconv.Itoa(n)+"]", element); err != nil {
			return err
		}
	}
	if n == 0 {
		return invalid(location, "is empty, want at least one element")
	}
	return nil
}

// kindOfJSON returns the name of a value's type, for messages.
func kindOfJSON(value jsontext.Value) string {
	switch value.Kind() {
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	case '"':
		return "a text"
	case '0':
		return "a number"
	case '[':
		return "an array"
	default:
		return "an object"
	}
}

// textMember is a member that is a text of 1 to most characters.
func textMember(name string, most int, into *string) member {
	return member{name: name, read: func(location string, value jsontext.Value) (err error) {
		if *into, err = readText(location, value); err != nil {
			return err
		}
		if n := utf8.RuneCountInString(*into); n < 1 || n > most {
			return invalid(location, "want 1 to %d characters", most)
		}
		return nil
	}}
}

// timeMember is a member that is a time as [parseTime] takes it.
func timeMember(name string, into *time.Time) member {
	return member{name: name, read: func(location string, value jsontext.Value) error {
		text, err := readText(location, value)
		if err != nil {
			return err
		}
		*into, err = parseTime(location, text)
		return err
	}}
}

// limited returns a 413 for a value that is larger than any single one may be, and a 400 for one that is nested deeper.
func limited(location string, value jsontext.Value) error {
	if len(value) > queue.MaxPayload {
		return problem(CodeTooLarge, "more than %d bytes", queue.MaxPayload).at(location)
	}
	if deep := event.DepthProblem(value); deep != "" {
		return invalid(location, "%s", deep)
	}
	return nil
}

func readText(location string, value jsontext.Value) (string, error) {
	if value.Kind() != '"' {
		return "", invalid(location, "want a text, not %s", kindOfJSON(value))
	}
	if err := limited(location, value); err != nil {
		return "", err
	}
	text, err := jsontext.AppendUnquote(nil, value)
	if err != nil {
		return "", invalid(location, "want a text in UTF-8")
	}
	return string(text), nil
}

// parseTime reads a time of RFC 3339, in any zone and with any fraction of the second.
func parseTime(location, text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, invalid(location, "want a time such as 2021-03-10T22:13:32.433956Z (RFC 3339)")
	}
	return at.UTC(), nil
}
