package journal

import (
	"encoding/binary"
	"slices"

	"github.com/millrace/millrace/shared/event"
)

// What a slot says of its events' origins, if one of them has any. Before the events:
//
//	the number of actors, and each of their names as its length and its bytes,
//
// and after the fields of each event:
//
//	3 * actor + kind, then, depending on the kind, how far back the cause is,
//
// where actor counts from 1 and is 0 if there is none. A cause of a slot before costs some 3 bytes, one of the same slot 2.
const (
	causeNone = iota
	causeByID // the difference of the ids follows
	causeAt   // the difference of the positions follows
	causeKinds
)

// origins are the actors of a slot's events, each once.
type origins struct{ actors []string }

// originsOf returns the origins of events, and whether an event has one. The actors are appended to memory.
func originsOf(events []event.Event, memory []string) (o origins, caused bool) {
	o.actors = memory
	for i := range events {
		e := &events[i]
		caused = caused || e.Cause != 0 || e.By != ""
		if e.By != "" && !slices.Contains(o.actors, e.By) {
			o.actors = append(o.actors, e.By)
		}
	}
	return o, caused
}

// size returns the most bytes that the origins take.
func (o *origins) size(events int) int {
	size := (1 + 2*events) * binary.MaxVarintLen64
	for _, name := range o.actors {
		size += binary.MaxVarintLen64 + len(name)
	}
	return size
}

func (o *origins) append(buf []byte) []byte {
	buf = binary.AppendUvarint(buf, uint64(len(o.actors)))
	for _, name := range o.actors {
		buf = appendText(buf, name)
	}
	return buf
}

// appendOrigin appends the origin of one event of the slot at a position. A cause that does not lie before it is left out.
func (o *origins) appendOrigin(buf []byte, position int64, e *event.Event) []byte {
	kind, back := causeNone, int64(0)
	if id := e.Cause.ID(); id > 0 && id < e.ID {
		kind, back = causeByID, int64(e.ID-id)
	} else if at := e.Cause.Position(); at > 0 && at < position {
		kind, back = causeAt, position-at
	}
	actor := 1 + slices.Index(o.actors, e.By) // 0 if it has none
	buf = binary.AppendUvarint(buf, uint64(causeKinds*actor+kind))
	if kind != causeNone {
		buf = binary.AppendUvarint(buf, uint64(back))
	}
	return buf
}

// actors reads the names of a slot's actors into memory.
func (in *input) actors(memory []string) []string {
	count := in.number()
	if count > uint64(len(in.bytes)) {
		in.bad = true
	}
	for range count {
		if in.bad {
			break
		}
		memory = append(memory, in.string())
	}
	return memory
}

// origin reads the origin of an event that is complete otherwise.
func (in *input) origin(position int64, actors []string, e *event.Event) {
	mark := in.number()
	actor, kind := mark/causeKinds, mark%causeKinds
	if in.bad || actor > uint64(len(actors)) {
		in.bad = true
		return
	}
	if actor > 0 {
		e.By = actors[actor-1]
	}
	if kind == causeNone {
		return
	}
	back := in.number()
	switch {
	case in.bad || back == 0:
		in.bad = true
	case kind == causeByID && back < uint64(max(e.ID, 0)):
		e.Cause = event.CausedBy(e.ID - event.ID(back))
	case kind == causeAt && back < uint64(position):
		e.Cause = event.CausedAt(position - int64(back))
	default:
		in.bad = true
	}
}
