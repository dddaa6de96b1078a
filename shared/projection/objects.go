package projection

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
)

// Objects returns the projection of custom events: for each key the merged fields of its events, of which the newest value
// counts. An event whose type ends in `Removed` removes its key, which reappears with its next event.
func Objects() journal.Fold {
	apply := func(state *journal.State, e *event.Event) {
		switch {
		case e.Key.Path == "" || event.FamilyOf(e.Type) != event.CustomEvent:
		case event.RemovesObject(e.Type):
			state.Delete(e.Key.Path)
		default:
			state.Put(strings.Clone(e.Key.Path), object(state.Get(e.Key.Path), e))
		}
	}
	show := func(dst []byte, _ string, value []byte) []byte { return append(dst, once(value)...) }
	return journal.Fold{Name: "ObjectOverview", Apply: apply, Show: show}
}

// own are the members that each element has itself. Fields of these names are not copied from events.
var own = [...]string{`"TYPE"`, `"key"`, `"eventId"`, `"lastType"`}

// object returns the element of the event's key: the fields of before, an element or nil, overwritten by the event's.
func object(before []byte, e *event.Event) []byte {
	var memory [2][16]member // spares most elements allocations
	fields := appendMembers(memory[0][:0], e.Fields)
	var text [1024]byte // the state keeps the element, so that it gets just the room that it needs in the end
	value := append(text[:0], `{"TYPE":"ObjectOverview","key":`...)
	value, _ = jsontext.AppendQuote(value, e.Key.Path)
	value = strconv.AppendInt(append(value, `,"eventId":`...), int64(e.ID), 10)
	value, _ = jsontext.AppendQuote(append(value, `,"lastType":`...), e.Type)
	for _, m := range appendMembers(memory[1][:0], once(before)) {
		if !isOwn(m.name) {
			value = fields.newest(m).append(value)
		}
	}
	for _, m := range fields {
		if !isOwn(m.name) && !m.used {
			value = m.append(value)
		}
	}
	return bytes.Clone(append(value, '}'))
}

func isOwn(name []byte) bool {
	for _, o := range own {
		if string(name) == o {
			return true
		}
	}
	return false
}

// member is one member of a JSON object.
type member struct {
	name  []byte // as JSON, in the spelling of [event.Spelled]
	value []byte // as JSON
	used  bool   // written already
}

// append appends the member after a comma.
func (m member) append(dst []byte) []byte {
	return append(append(append(append(dst, ','), m.name...), ':'), m.value...)
}

// once returns an element with each member once. Up to release 0.2.0 this fold told names apart by their spelling, and processes of it
// may share the store; what they have stored outlives its events, so that the fold keeps its name. Of two values of a member the first
// counts, since nothing says which is newer: so the element's own members do, and the next event settles the others.
func once(element []byte) []byte {
	if !escapesNames(element) {
		return element
	}
	var kept []byte
	seen := map[string]bool{}
	for _, m := range appendMembers(nil, element) {
		if !seen[string(m.name)] {
			seen[string(m.name)] = true
			kept = m.append(kept)
		}
	}
	kept[0] = '{' // where the comma is
	return append(kept, '}')
}

// escapesNames reports whether the name of a member of a JSON object is written with escapes. Without, a name has one spelling.
func escapesNames(object []byte) bool {
	if bytes.IndexByte(object, '\\') < 0 {
		return false
	}
	for name := range event.Members(object[1 : len(object)-1]) {
		if bytes.IndexByte(name, '\\') >= 0 {
			return true
		}
	}
	return false
}

type members []member

// newest returns the member that replaces m: the one in ms of the same name, which is marked as used, or m itself.
func (ms members) newest(m member) member {
	for i := range ms {
		if bytes.Equal(ms[i].name, m.name) {
			ms[i].used = true
			return ms[i]
		}
	}
	return m
}

// appendMembers splits a JSON object, or members without the braces around them, into members, which it appends to all.
func appendMembers(all members, object []byte) members {
	if len(object) > 0 && object[0] == '{' {
		object = object[1 : len(object)-1]
	}
	for name, value := range event.Members(object) {
		all = append(all, member{name: event.Spelled(name), value: value})
	}
	return all
}
