package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/millrace/millrace/shared/event"
)

// Bounds of what is read: the server takes bodies of 1 MiB, and no line can be longer than one.
const (
	maxLine  = 1 << 20
	maxBatch = 900 << 10
)

// lines reads events, one JSON object a line, and returns them in batches.
type lines struct {
	name    string
	scanner *bufio.Scanner
	line    int
	batch   int
	kept    *event.Event // read already, but too large for the batch before
}

func newLines(r io.Reader, name string, batch int) *lines {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, 64<<10), maxLine)
	return &lines{name: name, scanner: s, batch: batch}
}

// next returns the next batch, io.EOF when there is none.
func (l *lines) next() ([]event.Event, error) {
	var batch []event.Event
	size := 0
	for len(batch) < l.batch {
		e, err := l.event()
		if errors.Is(err, io.EOF) && len(batch) > 0 {
			break
		}
		if err != nil {
			return nil, err
		}
		if size += e.Size(); size > maxBatch && len(batch) > 0 {
			l.kept = e
			break
		}
		batch = append(batch, *e)
	}
	return batch, nil
}

// event returns the next event, io.EOF when there is none; empty lines are skipped.
func (l *lines) event() (*event.Event, error) {
	if e := l.kept; e != nil {
		l.kept = nil
		return e, nil
	}
	for l.scanner.Scan() {
		l.line++
		text := bytes.TrimSpace(l.scanner.Bytes())
		if len(text) == 0 {
			continue
		}
		e, err := parseEvent(text)
		if err != nil {
			return nil, usageError{fmt.Errorf("%s, line %d: %w", l.name, l.line, err)}
		}
		return e, nil
	}
	if err := l.scanner.Err(); err != nil {
		return nil, fmt.Errorf("%s, line %d: %w", l.name, l.line+1, err)
	}
	return nil, io.EOF
}

// parseEvent reads one event by the server's own rules.
func parseEvent(text []byte) (*event.Event, error) {
	events, err := event.ParseEvents(append(append([]byte{'['}, text...), ']'))
	if err != nil {
		return nil, err
	}
	if len(events) != 1 {
		return nil, fmt.Errorf("want one JSON object a line, found %d", len(events))
	}
	return &events[0], nil
}

// member returns the name and the JSON of the argument NAME=TEXT or NAME:=JSON; the latter is not checked.
func member(field string) (name, value string, err error) {
	name, value, found := strings.Cut(field, "=")
	name, isJSON := strings.CutSuffix(name, ":")
	if !found || name == "" {
		return "", "", misused("%q is no field, want NAME=TEXT or NAME:=JSON", field)
	}
	if !isJSON {
		value = quote(value)
	}
	return name, value, nil
}

// eventOf makes an event of arguments: NAME=TEXT and NAME:=JSON.
func eventOf(typeName, key string, fields []string) (event.Event, error) {
	var b bytes.Buffer
	b.WriteString(`{"TYPE":` + quote(typeName))
	taken := map[string]string{"TYPE": "TYPE is the event's type, which is the first argument"}
	if key != "" {
		taken["key"] = "key is the event's key, which is the second argument"
		b.WriteString(`,"key":` + quote(key))
	}
	for _, field := range fields {
		name, value, err := member(field)
		if err != nil {
			return event.Event{}, err
		}
		if what := taken[name]; what != "" {
			return event.Event{}, misused("%s: %s", field, what)
		}
		taken[name] = "the field " + name + " is given twice"
		b.WriteString("," + quote(name) + ":" + value)
	}
	b.WriteByte('}')
	e, err := parseEvent(b.Bytes())
	if err != nil {
		return event.Event{}, usageError{err}
	}
	return *e, nil
}

// isTerminal reports whether r is a terminal.
func isTerminal(r io.Reader) bool {
	file, is := r.(*os.File)
	if !is {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// quote returns s as a JSON string.
func quote(s string) string {
	quoted, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string always has a JSON form
	}
	return string(quoted)
}
