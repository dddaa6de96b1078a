package event

import (
	"bytes"
	"strconv"
)

// Cause says which event on the same journal brought another one about. Zero: none did, as with a client's request.
//
// A writer names the event in the cheapest way that it can: by its id, by the place of the object's last change, or by
// its distance in the same write. All of them take a few bytes of the slot and no read. Readers see ids only.
type Cause int64

// The values of a Cause are, from the least: a position as a negative number; 0; an id; [MaxID] + a distance.

// CausedBy returns the Cause that is the event with that id; 0 is none.
func CausedBy(id ID) Cause { return Cause(id) }

// CausedAt returns the Cause that is the last event with the same key in the slot at that position: of a task, with the
// position that the version of its item is, what happened to it last. A position of 0 or less is none.
func CausedAt(position int64) Cause { return Cause(-max(position, 0)) }

// CausedBefore returns the Cause that is the event n places before this one among the events of the same change, n at least 1.
func CausedBefore(n int) Cause { return Cause(MaxID) + Cause(n) }

// ID returns the id; 0 if the cause is none or is named in another way.
func (c Cause) ID() ID {
	if c < 0 || c > Cause(MaxID) {
		return 0
	}
	return ID(c)
}

// Position returns the position of [CausedAt], otherwise 0.
func (c Cause) Position() int64 { return int64(max(-c, 0)) }

// Before returns the distance of [CausedBefore], otherwise 0.
func (c Cause) Before() int { return int(max(c-Cause(MaxID), 0)) }

// appendCause appends the members cause and by, each after a comma, where the event has them.
func (e *Event) appendCause(dst []byte) []byte {
	if id := e.Cause.ID(); id != 0 {
		dst = append(dst, `,"cause":`...)
		dst = strconv.AppendInt(dst, int64(id), 10)
	}
	if e.By != "" {
		dst = append(dst, `,"by":`...)
		dst = appendString(dst, e.By)
	}
	return dst
}

// LastOf returns the id of the last of events that has a key; 0 if none has it.
func LastOf(events []Event, key Key) ID {
	for i := len(events) - 1; i >= 0; i-- {
		if events[i].Key == key {
			return events[i].ID
		}
	}
	return 0
}

// Apart returns the event without fields of its own that are named cause or by. Where an event is shown with its cause and its
// actor, these names are the journal's alone: nobody may say of an event that another has brought it about.
func (e *Event) Apart() Event {
	apart := *e
	if !mayHaveOrigin(e.Fields) {
		return apart
	}
	apart.Fields = nil
	for name, value := range Members(e.Fields) {
		if text := string(unquote(name)); text == "cause" || text == "by" {
			continue
		}
		apart.Fields = appendField(apart.Fields, 0, name, value)
	}
	return apart
}

// TakeOrigin sets Cause and By of an event that a server has shown with its cause: there they are fields. The error says that a field
// of that name is none of the journal's.
func (e *Event) TakeOrigin() error {
	for name, value := range Members(e.Fields) {
		switch string(name) {
		case `"cause"`:
			n, err := strconv.ParseInt(string(value), 10, 64)
			if err != nil || n <= 0 || ID(n) > MaxID {
				return refuse(Invalid, "cause", "is not an EventId")
			}
			e.Cause = CausedBy(ID(n))
		case `"by"`:
			if value[0] != '"' {
				return refuse(Invalid, "by", "is not a text")
			}
			e.By = string(unquote(value))
		}
	}
	*e = e.Apart()
	return nil
}

// mayHaveOrigin reports whether fields may have a member named cause or by. It is quick, since it is asked of every event.
func mayHaveOrigin(fields []byte) bool {
	return bytes.Contains(fields, []byte(`cause":`)) || bytes.Contains(fields, []byte(`by":`)) || bytes.IndexByte(fields, '\\') >= 0
}
