package event

import (
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// ID is an EventId: microseconds since 1970-01-01 00:00 UTC, made strictly rising along the journal, at most 2^53 so that
// it is exact as a JavaScript number (as in JobScheduler's event API). 0 is before every event.
type ID int64

// MaxID is the largest EventId, 2^53: the end of JavaScript's exact integers. As a time it is in the year 2255.
const MaxID ID = 1 << 53

// IDAt returns the EventId of the instant t.
func IDAt(t time.Time) ID { return ID(t.UnixMicro()) }

// Time returns the instant that the id encodes, to the microsecond, in UTC.
func (id ID) Time() time.Time { return time.UnixMicro(int64(id)).UTC() }

// Key names the object that an event is about. The zero Key means none.
type Key struct {
	// Path is the object's path: "/CHAIN,ORDER" of an order, "/JOB" of a task's job, "Job:/NAME" of a file based object,
	// or what the emitter of a custom event says, up to [MaxKey] bytes. Empty: the event has no key.
	Path string
	// TaskID, if not empty, makes this the key of a task, in JSON {"jobPath":Path,"taskId":TaskID}.
	TaskID string
}

// IsZero reports whether there is no key, as in a SchedulerEvent.
func (k Key) IsZero() bool { return k == Key{} }

// AppendJSON appends the key as JSON: an object if it is a task's, otherwise a string. It does not allocate if dst has the
// capacity.
func (k Key) AppendJSON(dst []byte) []byte {
	if k.TaskID == "" {
		return appendString(dst, k.Path)
	}
	dst = append(dst, `{"jobPath":`...)
	dst = appendString(dst, k.Path)
	dst = append(dst, `,"taskId":`...)
	dst = appendString(dst, k.TaskID)
	return append(dst, '}')
}

// Event is one fact on the journal.
type Event struct {
	ID   ID     // 0 until the journal has given one
	Type string // 1 to [MaxName] bytes: an ASCII letter, then ASCII letters, digits and "_.-:"
	Key  Key

	// Fields are the event's own fields as JSON members without the braces around them, such as
	// `"nodeId":"BB","taskId":"9"`; empty where there are none. They never hold eventId, key or TYPE, and must not be
	// changed.
	Fields []byte

	// Cause is the event that brought this one about, By the name of the token whose bearer did; each may be empty. Writers set
	// Cause; By is set by the journal, from the context of the write, unless it is given. Readers see them only if they ask.
	Cause Cause
	By    string
}

// AppendJSON appends the event as a JSON object, in the order eventId, key, TYPE, cause, by, fields. An ID of 0, an absent key,
// a cause that is no id and an empty by are left out. The key is also left out where withKey is false, as in responses about a single object (as in JobScheduler's
// event API). It does not allocate if dst has the capacity.
func (e *Event) AppendJSON(dst []byte, withKey bool) []byte {
	dst = append(dst, '{')
	if e.ID != 0 {
		dst = append(dst, `"eventId":`...)
		dst = strconv.AppendInt(dst, int64(e.ID), 10)
		dst = append(dst, ',')
	}
	if withKey && !e.Key.IsZero() {
		dst = append(dst, `"key":`...)
		dst = e.Key.AppendJSON(dst)
		dst = append(dst, ',')
	}
	dst = append(dst, `"TYPE":`...)
	dst = appendString(dst, e.Type)
	dst = e.appendCause(dst)
	if len(e.Fields) > 0 {
		dst = append(dst, ',')
		dst = append(dst, e.Fields...)
	}
	return append(dst, '}')
}

// Size returns the number of bytes of the event as JSON, without regard to escapes in its key. It serves for limits and
// for the capacity of buffers.
func (e *Event) Size() int {
	const frame = len(`{"eventId":1478257656606001,"key":"","TYPE":"",}`)
	const task = len(`{"jobPath":"","taskId":}`)
	n := frame + len(e.Type) + len(e.Key.Path) + len(e.Fields)
	if e.Key.TaskID != "" {
		n += task + len(e.Key.TaskID)
	}
	if e.Cause.ID() != 0 {
		n += len(`,"cause":1478257656606001`)
	}
	if e.By != "" {
		n += len(`,"by":""`) + len(e.By)
	}
	return n
}

// MarshalJSON returns the event as [Event.AppendJSON] writes it, with its key.
func (e Event) MarshalJSON() ([]byte, error) {
	return e.AppendJSON(make([]byte, 0, e.Size()), true), nil
}

// appendString appends s as a JSON string. Bytes that are not UTF-8 become U+FFFD; parsers refuse them, so they can only
// come from code.
func appendString(dst []byte, s string) []byte {
	dst, _ = jsontext.AppendQuote(dst, s)
	return dst
}
