package event

import "strconv"

// SeqKind is the variant of an answer to a follower (seed 000).
type SeqKind uint8

// The variants.
const (
	// NonEmpty holds events.
	NonEmpty SeqKind = iota + 1
	// Empty: no event came in time; go on after LastEventID.
	Empty
	// Torn: events after the one asked for have been evicted; read a snapshot and begin again.
	Torn
)

// String answers the variant's TYPE in JSON.
func (k SeqKind) String() string {
	switch k {
	case NonEmpty:
		return "NonEmpty"
	case Empty:
		return "Empty"
	case Torn:
		return "Torn"
	default:
		return ""
	}
}

// Seq is an answer to a follower, seed 000's EventSeq.
type Seq struct {
	Kind SeqKind
	// EventID is a time stamp of the answer without further meaning; it is never to be used as `after`.
	EventID ID
	// LastEventID, of [Empty] only, is where to go on: the last event looked at, selected or not.
	LastEventID ID
	// Events, of [NonEmpty] only, are at least one, in the order of the answer.
	Events []Event
}

// AppendJSON appends the answer as a JSON object:
//
//	{"TYPE":"NonEmpty","eventId":N,"eventSnapshots":[…]}
//	{"TYPE":"Empty","eventId":N,"lastEventId":M}
//	{"TYPE":"Torn","eventId":N}
//
// The events' keys are left out where withKeys is false. It does not allocate if dst has room.
func (s *Seq) AppendJSON(dst []byte, withKeys bool) []byte {
	dst = append(dst, `{"TYPE":"`...)
	dst = append(dst, s.Kind.String()...)
	dst = append(dst, `","eventId":`...)
	dst = strconv.AppendInt(dst, int64(s.EventID), 10)
	switch s.Kind {
	case NonEmpty:
		dst = append(dst, `,"eventSnapshots":`...)
		dst = AppendEvents(dst, s.Events, withKeys)
	case Empty:
		dst = append(dst, `,"lastEventId":`...)
		dst = strconv.AppendInt(dst, int64(s.LastEventID), 10)
	}
	return append(dst, '}')
}

// AppendEvents appends events as a JSON array: in an answer, or without ids as the body of `POST event`.
func AppendEvents(dst []byte, events []Event, withKeys bool) []byte {
	dst = append(dst, '[')
	for i := range events {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = events[i].AppendJSON(dst, withKeys)
	}
	return append(dst, ']')
}

// Size answers the bytes of the answer as JSON, give or take escapes: the capacity to begin [Seq.AppendJSON] with.
func (s *Seq) Size() int {
	n := len(`{"TYPE":"NonEmpty","eventId":1478257702567000,"lastEventId":1478257702567000,"eventSnapshots":[]}`)
	for i := range s.Events {
		n += s.Events[i].Size() + len(",")
	}
	return n
}
