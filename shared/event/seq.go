package event

import "strconv"

// SeqKind is the variant of a response to a follower (as in JobScheduler's event API).
type SeqKind uint8

// The variants.
const (
	// NonEmpty: the response holds events.
	NonEmpty SeqKind = iota + 1
	// Empty: no event came in time; continue after LastEventID.
	Empty
	// Torn: events after the one asked for have been evicted; read a snapshot and begin again.
	Torn
)

// String returns the variant's TYPE in JSON; "" of an unknown one.
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

// Seq is a response to a follower, JobScheduler's EventSeq.
type Seq struct {
	Kind SeqKind // the variant
	// EventID is a time stamp of the response. It must not be used as `after`.
	EventID ID
	// LastEventID, of [Empty] only, is where to continue: the last event looked at, selected or not.
	LastEventID ID
	// Events, of [NonEmpty] only, are at least one, in the order of the journal.
	Events []Event
}

// AppendJSON appends the response as a JSON object:
//
//	{"TYPE":"NonEmpty","eventId":N,"eventSnapshots":[…]}
//	{"TYPE":"Empty","eventId":N,"lastEventId":M}
//	{"TYPE":"Torn","eventId":N}
//
// The events' keys are left out where withKeys is false. It does not allocate if dst has the capacity.
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

// AppendEvents appends events as a JSON array: in a response, or without ids as the body of `POST event`.
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
