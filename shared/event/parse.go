package event

import (
	"fmt"
	"strconv"
)

// ParseEvent reads one event as [Event.AppendJSON] writes it, with or without id and key. Members that the package does
// not know are the event's own fields. Its errors are [*Error] with locations such as "event.TYPE".
func ParseEvent(text []byte) (Event, error) {
	r, err := read(text, "event")
	if err != nil {
		return Event{}, err
	}
	e, err := r.event()
	if err != nil {
		return Event{}, err.under("event")
	}
	return e, nil
}

// UnmarshalJSON reads the event as [ParseEvent] does.
func (e *Event) UnmarshalJSON(text []byte) error {
	parsed, err := ParseEvent(text)
	if err != nil {
		return err
	}
	*e = parsed
	return nil
}

// ParseSeq reads a response as [Seq.AppendJSON] writes it and ignores members that it does not know. Its errors are
// [*Error] with locations such as "answer.eventSnapshots[2].TYPE".
func ParseSeq(text []byte) (Seq, error) {
	r, err := read(text, "answer")
	if err != nil {
		return Seq{}, err
	}
	s, err := r.seq()
	if err != nil {
		return Seq{}, err.under("answer")
	}
	return s, nil
}

// reading is the state while a server's response is read. It ends at the first error; each caller prefixes its part of the
// location.
type reading struct {
	*cursor
	memory []byte // holds the fields of all events; its capacity is that of the text, so that it never moves
}

func read(text []byte, name string) (*reading, *Error) {
	c, err := open(text, name)
	if err != nil {
		return nil, err
	}
	return &reading{cursor: c, memory: make([]byte, 0, len(text))}, nil
}

func (r *reading) seq() (Seq, *Error) {
	var s Seq
	err := r.object(func(_, name []byte) (err *Error) {
		switch string(name) {
		case "TYPE":
			s.Kind, err = r.seqKind()
		case "eventId":
			s.EventID, err = r.id()
		case "lastEventId":
			s.LastEventID, err = r.id()
		case "eventSnapshots":
			s.Events, err = r.events()
		default:
			r.value()
		}
		return err
	})
	switch {
	case err != nil:
		return Seq{}, err
	case s.Kind == 0:
		return Seq{}, refuse(Invalid, ".TYPE", "is missing")
	case (s.Kind == NonEmpty) != (len(s.Events) > 0):
		return Seq{}, refuse(Invalid, ".eventSnapshots", fmt.Sprintf("has %d events, in an answer of TYPE %v", len(s.Events), s.Kind))
	}
	return s, nil
}

func (r *reading) seqKind() (SeqKind, *Error) {
	text, err := r.text()
	if err != nil {
		return 0, err
	}
	for _, kind := range [...]SeqKind{NonEmpty, Empty, Torn} {
		if kind.String() == text {
			return kind, nil
		}
	}
	return 0, refuse(Invalid, "", fmt.Sprintf("is %q: NonEmpty, Empty and Torn are known", shorten(text)))
}

func (r *reading) events() ([]Event, *Error) {
	if err := r.want('['); err != nil {
		return nil, err
	}
	var events []Event
	for more := r.enter(); more; more = r.next() {
		e, err := r.event()
		if err != nil {
			return nil, err.under("[" + strconv.Itoa(len(events)) + "]")
		}
		events = append(events, e)
	}
	return events, nil
}

func (r *reading) event() (Event, *Error) {
	var e Event
	start := len(r.memory)
	err := r.object(func(raw, name []byte) (err *Error) {
		switch string(name) {
		case "eventId":
			e.ID, err = r.id()
		case "TYPE":
			e.Type, err = r.text()
		case "key":
			e.Key, err = r.key()
		default:
			r.memory = appendField(r.memory, start, raw, r.value())
		}
		return err
	})
	switch {
	case err != nil:
		return Event{}, err
	case e.Type == "":
		return Event{}, refuse(Invalid, ".TYPE", "is missing or empty")
	}
	if len(r.memory) > start {
		e.Fields = r.memory[start:len(r.memory):len(r.memory)]
	}
	return e, nil
}

// key reads a string, or the object that is the key of a task.
func (r *reading) key() (Key, *Error) {
	var k Key
	if r.kind() == '"' {
		path, err := r.text()
		return Key{Path: path}, err
	}
	err := r.object(func(_, name []byte) (err *Error) {
		switch string(name) {
		case "jobPath":
			k.Path, err = r.text()
		case "taskId":
			k.TaskID, err = r.text()
		default:
			r.value()
		}
		return err
	})
	if err == nil && k.TaskID == "" {
		err = refuse(Invalid, ".taskId", "is missing or empty, in the key of a task")
	}
	return k, err
}

// object reads an object. It calls member for each member, which must take the value.
func (r *reading) object(member func(raw, name []byte) *Error) *Error {
	if err := r.want('{'); err != nil {
		return err
	}
	for more := r.enter(); more; more = r.next() {
		raw, name := r.name()
		if err := member(raw, name); err != nil {
			return err.under("." + shorten(string(name)))
		}
	}
	return nil
}

func (r *reading) text() (string, *Error) {
	if err := r.want('"'); err != nil {
		return "", err
	}
	return string(unquote(r.value())), nil
}

func (r *reading) id() (ID, *Error) {
	value := string(r.value())
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < 0 || n > int64(MaxID) {
		return 0, refuse(Invalid, "", shorten(value)+" is not an EventId: a whole number from 0 to 2^53")
	}
	return ID(n), nil
}

// want refuses the next value if it does not begin with that byte.
func (r *reading) want(first byte) *Error {
	if k := r.kind(); k != first {
		return refuse(Invalid, "", "must be "+kindName(first)+", not "+kindName(k))
	}
	return nil
}

// under returns the error with where before each location.
func (e *Error) under(where string) *Error {
	for i := range e.Problems {
		e.Problems[i].Location = where + e.Problems[i].Location
	}
	return e
}
