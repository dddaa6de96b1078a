package event

import (
	"fmt"
	"strconv"
)

// Limits of an emission.
const (
	MaxEvents = 10_000    // events in one body
	MaxSize   = 256 << 10 // bytes of one event, by [Event.Size]
	MaxKey    = 1024      // bytes of a key
)

// ParseEvents reads the body of `POST event`: a JSON array of 1 to [MaxEvents] objects {"TYPE":"…","key":"…",…}. TYPE is
// the name of a custom type that may be emitted; key, a string of 1 to [MaxKey] bytes, is optional;
// eventId is refused, since the journal gives it. All other members are the event's own fields, of any type, and are kept
// as they are written, in their order, without spaces between tokens; their names as [Spelled].
//
// The error is an [*Error] with locations such as "body[2].key". It names the first 20 things that are wrong; of malformed
// JSON, and of a name given twice in one object, the first only. The events share no memory with the body.
func ParseEvents(body []byte) ([]Event, error) {
	c, refused := open(body, "body")
	if refused != nil {
		return nil, refused
	}
	if k := c.kind(); k != '[' {
		return nil, refuse(Invalid, "body", "must be an array of events, not "+kindName(k))
	}
	e := emission{cursor: c, memory: make([]byte, 0, len(body))}
	if !c.enter() {
		return nil, refuse(Invalid, "body", "is an empty array: give at least one event")
	}
	for more := true; more; more = c.next() {
		if len(e.events) == MaxEvents {
			return nil, refuse(TooLarge, "body", fmt.Sprintf("has more than %d events: send them in several requests", MaxEvents))
		}
		e.event()
	}
	if err := e.err(); err != nil {
		return nil, err
	}
	return e.events, nil
}

// emission is the state while one body is read.
type emission struct {
	*cursor
	problems
	memory []byte // holds the fields of all events; its capacity is that of the body, so that it never moves
	events []Event
}

// event reads the next event. An invalid one is counted too, for the locations of later ones.
func (e *emission) event() {
	e.events = append(e.events, Event{})
	if k := e.kind(); k != '{' {
		e.refuse(Invalid, "", "must be an object, not "+kindName(k))
		e.value()
		return
	}
	start := len(e.memory)
	typed := false
	for more := e.enter(); more; more = e.next() {
		raw, name := e.name()
		value := e.value()
		switch string(name) {
		case "TYPE":
			typed = true
			e.typeName(value)
		case "key":
			e.key(value)
		case "eventId":
			e.refuse(Invalid, ".eventId", "is given by the journal: leave it out")
		default:
			e.field(start, raw, value)
		}
	}
	event := e.last()
	if len(e.memory) > start {
		event.Fields = e.memory[start:len(e.memory):len(e.memory)]
	}
	if !typed {
		e.refuse(Invalid, ".TYPE", "is missing: give the event's type")
	}
	if size := event.Size(); size > MaxSize {
		e.refuse(TooLarge, "", fmt.Sprintf("is an event of %d bytes: at most %d are possible", size, MaxSize))
	}
}

func (e *emission) last() *Event { return &e.events[len(e.events)-1] }

// refuse adds a problem with a part of the last event.
func (e *emission) refuse(reason Reason, part, message string) {
	e.add(reason, "body["+strconv.Itoa(len(e.events)-1)+"]"+part, message)
}

func (e *emission) typeName(value []byte) {
	if value[0] != '"' {
		e.refuse(Invalid, ".TYPE", "must be a string, not "+kindName(value[0]))
		return
	}
	name := unquote(value)
	if n := len(e.events); n > 1 && e.reason == 0 && e.events[n-2].Type == string(name) {
		e.last().Type = e.events[n-2].Type // batches are often of one type: check and keep the name once
		return
	}
	e.last().Type = string(name)
	if reason, message := emitProblem(e.last().Type); message != "" {
		e.refuse(reason, ".TYPE", message)
	}
}

func (e *emission) key(value []byte) {
	if value[0] != '"' {
		e.refuse(Invalid, ".key", "must be a string, not "+kindName(value[0]))
		return
	}
	switch key := unquote(value); {
	case len(key) == 0:
		e.refuse(Invalid, ".key", "is empty: leave it out if the event is about no object")
	case len(key) > MaxKey:
		e.refuse(Invalid, ".key", fmt.Sprintf("has %d bytes: a key has at most %d", len(key), MaxKey))
	default:
		e.last().Key.Path = string(key)
	}
}

// field keeps a member of the event whose fields begin at start.
func (e *emission) field(start int, name, value []byte) {
	if problem := tooDeep(e.depth); problem != "" {
		e.refuse(Invalid, "."+shorten(string(unquote(name))), problem)
	}
	e.memory = appendField(e.memory, start, Spelled(name), value) // no longer than it was
}

// appendField appends a member, after a comma unless it is the first of the event whose fields begin at start.
func appendField(memory []byte, start int, name, value []byte) []byte {
	if len(memory) > start {
		memory = append(memory, ',')
	}
	memory = append(memory, name...)
	memory = append(memory, ':')
	return appendCompact(memory, value)
}
