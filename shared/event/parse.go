package event

import (
	"fmt"
	"strconv"
)

// ParseEvent reads one event as [Event.AppendJSON] writes it, with or without id and key. It is lenient where a newer
// server may say more than this package knows. Its errors are [*Error] with locations such as "event.TYPE".
func ParseEvent(text []byte) (Event, error) {
	c, refused := open(text, "event")
	if refused != nil {
		return Event{}, refused
	}
	r := reading{cursor: c, memory: make([]byte, 0, len(text))}
	e, err := r.event("event")
	if err != nil {
		return Event{}, err
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

// ParseSeq reads an answer as [Seq.AppendJSON] writes it. Its errors are [*Error] with locations such as
// "answer.eventSnapshots[2].TYPE".
func ParseSeq(text []byte) (Seq, error) {
	c, refused := open(text, "answer")
	if refused != nil {
		return Seq{}, refused
	}
	r := reading{cursor: c, memory: make([]byte, 0, len(text))}
	s, err := r.seq()
	if err != nil {
		return Seq{}, err
	}
	return s, nil
}

// reading is the reading of what a server has answered. It ends at the first thing that is wrong.
type reading struct {
	*cursor
	memory []byte // holds the fields of all events; as long as the text from the start, so that it never moves
}

func (r *reading) seq() (s Seq, err *Error) {
	const where = "answer"
	if err := r.want('{', where); err != nil {
		return s, err
	}
	for more := r.enter(); more && err == nil; more = err == nil && r.next() {
		switch _, name := r.name(); string(name) {
		case "TYPE":
			s.Kind, err = r.seqKind(where + ".TYPE")
		case "eventId":
			s.EventID, err = r.id(where + ".eventId")
		case "lastEventId":
			s.LastEventID, err = r.id(where + ".lastEventId")
		case "eventSnapshots":
			s.Events, err = r.events(where + ".eventSnapshots")
		default:
			r.value()
		}
	}
	switch {
	case err != nil:
		return s, err
	case s.Kind == 0:
		return s, refuse(Invalid, where+".TYPE", "is missing")
	case s.Kind == NonEmpty && len(s.Events) == 0:
		return s, refuse(Invalid, where+".eventSnapshots", "is missing or empty, in an answer of TYPE NonEmpty")
	}
	return s, nil
}

func (r *reading) seqKind(where string) (SeqKind, *Error) {
	text, err := r.text(where)
	if err != nil {
		return 0, err
	}
	for _, kind := range []SeqKind{NonEmpty, Empty, Torn} {
		if kind.String() == text {
			return kind, nil
		}
	}
	return 0, refuse(Invalid, where, fmt.Sprintf("is %q: NonEmpty, Empty and Torn are known", shorten(text)))
}

func (r *reading) events(where string) (events []Event, err *Error) {
	if err := r.want('[', where); err != nil {
		return nil, err
	}
	for more := r.enter(); more; more = r.next() {
		e, err := r.event(where)
		if err != nil {
			for i := range err.Problems { // the index is worth its allocation only here
				err.Problems[i].Location = where + "[" + strconv.Itoa(len(events)) + "]" + err.Problems[i].Location[len(where):]
			}
			return nil, err
		}
		events = append(events, e)
	}
	return events, nil
}

func (r *reading) event(where string) (e Event, err *Error) {
	if err := r.want('{', where); err != nil {
		return e, err
	}
	start := len(r.memory)
	for more := r.enter(); more && err == nil; more = err == nil && r.next() {
		raw, name := r.name()
		switch string(name) {
		case "eventId":
			e.ID, err = r.id(where + ".eventId")
		case "TYPE":
			e.Type, err = r.text(where + ".TYPE")
		case "key":
			e.Key, err = r.key(where + ".key")
		default:
			r.memory = appendField(r.memory, start, raw, r.value())
		}
	}
	if err == nil && e.Type == "" {
		err = refuse(Invalid, where+".TYPE", "is missing or empty")
	}
	e.Fields = r.memory[start:len(r.memory):len(r.memory)]
	return e, err
}

// key reads the key of an order or other object, a string, or of a task.
func (r *reading) key(where string) (k Key, err *Error) {
	if r.kind() == '"' {
		k.Path, err = r.text(where)
		return k, err
	}
	if err := r.want('{', where); err != nil {
		return k, err
	}
	for more := r.enter(); more && err == nil; more = err == nil && r.next() {
		switch _, name := r.name(); string(name) {
		case "jobPath":
			k.Path, err = r.text(where + ".jobPath")
		case "taskId":
			k.TaskID, err = r.text(where + ".taskId")
		default:
			r.value()
		}
	}
	if err == nil && k.TaskID == "" {
		err = refuse(Invalid, where+".taskId", "is missing or empty, in the key of a task")
	}
	return k, err
}

func (r *reading) text(where string) (string, *Error) {
	if err := r.want('"', where); err != nil {
		return "", err
	}
	return string(unquote(r.value())), nil
}

func (r *reading) id(where string) (ID, *Error) {
	value := r.value()
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil || n < 0 || n > int64(MaxID) {
		return 0, refuse(Invalid, where, shorten(string(value))+" is not an EventId: a whole number from 0 to 2^53")
	}
	return ID(n), nil
}

// want refuses the next value if it does not begin with that byte.
func (r *reading) want(first byte, where string) *Error {
	if k := r.kind(); k != first {
		return refuse(Invalid, where, "must be "+kindName(first)+", not "+kindName(k))
	}
	return nil
}
