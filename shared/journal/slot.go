package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/store"
)

// slot is one write-once entry of the journal: the events of one append, or a void.
type slot struct {
	position int64
	// last is the last EventId of all slots up to this one. Voids carry it too, so that it never falls from one slot to the
	// next and an EventId can be searched for.
	last   event.ID
	events []event.Event // nil in a void
}

// The bytes of a slot, all numbers as unsigned varints:
//
//	format (one byte), last, parts, count, first id, then per event: type, path, task id, fields,
//	each of them as its length and its bytes.
//
// A slot in which an event has a cause or an actor has the format slotCaused, see origin.go. A value that is too large for one
// item goes on in `parts` further items, cut anywhere.
const (
	slotPlain  = 1
	slotCaused = 2
)

// maxSlotItem is how many bytes one item of a slot holds at most, maxParts how many times as many a slot does.
const (
	maxSlotItem = 350 << 10
	maxParts    = 8
	maxSlot     = maxSlotItem * maxParts
)

var errSlot = errors.New("journal: a slot cannot be read: damaged, or written by a newer version")

// encodeSlot returns the bytes of a slot at a position, whose events have ids from first on. The byte that counts the parts is
// set by splitSlot.
func encodeSlot(position int64, last, first event.ID, events []event.Event) []byte {
	var some [8]string
	o, caused := originsOf(events, some[:0])
	format, size := byte(slotPlain), slotSize(events)
	if caused {
		format, size = slotCaused, size+o.size(len(events))
	}
	buf := append(make([]byte, 0, size), format)
	buf = binary.AppendUvarint(buf, uint64(last))
	buf = append(buf, 0)
	buf = binary.AppendUvarint(buf, uint64(len(events)))
	buf = binary.AppendUvarint(buf, uint64(first))
	if caused {
		buf = o.append(buf)
	}
	for i := range events {
		e := &events[i]
		buf = appendText(buf, e.Type)
		buf = appendText(buf, e.Key.Path)
		buf = appendText(buf, e.Key.TaskID)
		buf = appendText(buf, e.Fields)
		if caused {
			buf = o.appendOrigin(buf, position, e)
		}
	}
	return buf
}

func appendText[T string | []byte](buf []byte, text T) []byte {
	buf = binary.AppendUvarint(buf, uint64(len(text)))
	return append(buf, text...)
}

func slotSize(events []event.Event) int {
	size := 2 + 3*binary.MaxVarintLen64
	for i := range events {
		e := &events[i]
		size += len(e.Type) + len(e.Key.Path) + len(e.Key.TaskID) + len(e.Fields) + 4*binary.MaxVarintLen32
	}
	return size
}

// splitSlot cuts a slot's bytes into items of at most maxSlotItem, and notes in the first how many follow.
func splitSlot(value []byte) [][]byte {
	items := [][]byte{value}
	for tail := value; len(tail) > maxSlotItem; {
		last := len(items) - 1
		items[last], tail = tail[:maxSlotItem:maxSlotItem], tail[maxSlotItem:]
		items = append(items, tail)
	}
	_, n := binary.Uvarint(value[1:])
	value[1+n] = byte(len(items) - 1)
	return items
}

// partsOf returns how many items follow the first one of a slot.
func partsOf(value []byte) (int, error) {
	if !readable(value) {
		return 0, errSlot
	}
	_, n := binary.Uvarint(value[1:])
	if n <= 0 || 1+n >= len(value) {
		return 0, errSlot
	}
	return int(value[1+n]), nil
}

// lastOf returns the last id that a slot's first item carries, without reading the events.
func lastOf(value []byte) (event.ID, error) {
	if !readable(value) {
		return 0, errSlot
	}
	last, n := binary.Uvarint(value[1:])
	if n <= 0 {
		return 0, errSlot
	}
	return event.ID(last), nil
}

// readable reports whether a value begins as a slot of a known format.
func readable(value []byte) bool {
	return len(value) >= 3 && (value[0] == slotPlain || value[0] == slotCaused)
}

// decoder reads slots, keeping the events of many in one allocation.
type decoder struct {
	arena  []event.Event
	actors []string // of the slot that is being read
}

// room makes room for the events of a slot, and returns where they begin. Those of slots before stay where they are.
func (d *decoder) room(count int) (start int) {
	if len(d.arena)+count > cap(d.arena) {
		d.arena = make([]event.Event, 0, max(count, min(2*cap(d.arena), pageSize)))
	}
	return len(d.arena)
}

func (d *decoder) decode(position int64, value []byte) (slot, error) {
	if !readable(value) {
		return slot{}, fmt.Errorf("%w (position %d)", errSlot, position)
	}
	// A stored value never changes, so that the strings cut from it may share its bytes.
	in := input{bytes: value[1:], text: unsafe.String(&value[1], len(value)-1)}
	s := slot{position: position, last: event.ID(in.number())}
	in.skip(1)
	count, first := in.number(), event.ID(in.number())
	if in.bad || count > uint64(len(value)) {
		return slot{}, fmt.Errorf("%w (position %d)", errSlot, position)
	}
	caused := value[0] == slotCaused
	if caused {
		d.actors = in.actors(d.actors[:0])
	}
	start := d.room(int(count))
	for i := range event.ID(count) {
		d.arena = append(d.arena, event.Event{
			ID: first + i, Type: in.string(), Key: event.Key{Path: in.string(), TaskID: in.string()}, Fields: in.slice(),
		})
		if caused {
			in.origin(position, d.actors, &d.arena[len(d.arena)-1])
		}
	}
	if in.bad {
		return slot{}, fmt.Errorf("%w (position %d)", errSlot, position)
	}
	if count > 0 {
		s.events = d.arena[start:len(d.arena):len(d.arena)]
	}
	return s, nil
}

// input is a cursor over a slot's bytes, which it also holds as text so that strings are cut from it without copying.
type input struct {
	bytes []byte
	text  string
	at    int
	bad   bool
}

func (in *input) number() uint64 {
	n, size := binary.Uvarint(in.bytes[in.at:])
	if size <= 0 {
		in.bad = true
		return 0
	}
	in.at += size
	return n
}

func (in *input) skip(n int) (from int) {
	from = in.at
	if in.bad || n < 0 || n > len(in.bytes)-in.at {
		in.bad = true
		return from
	}
	in.at += n
	return from
}

func (in *input) string() string {
	from := in.skip(int(in.number()))
	if in.bad {
		return ""
	}
	return in.text[from:in.at]
}

func (in *input) slice() []byte {
	from := in.skip(int(in.number()))
	if in.bad {
		return nil
	}
	return in.bytes[from:in.at:in.at]
}

// void returns the bytes of a slot without events.
func void(last event.ID) []byte { return encodeSlot(0, last, last, nil) }

// slotOps returns the operations that write a slot. Rule (token): the slot is written once, under Absent, and the Write's
// token tells this write from another's.
func (k *keys) slotOps(position int64, value []byte) []store.Op {
	if len(value) <= maxSlotItem {
		return []store.Op{store.Put(store.Item{Key: k.slot(position), Version: position, Value: value}, store.Absent)}
	}
	items := splitSlot(value)
	ops := make([]store.Op, 0, len(items))
	for n := len(items) - 1; n >= 1; n-- {
		ops = append(ops, store.Put(store.Item{Key: k.part(position, n), Version: position, Value: items[n]}, store.Always))
	}
	return append(ops, store.Put(store.Item{Key: k.slot(position), Version: position, Value: items[0]}, store.Absent))
}
