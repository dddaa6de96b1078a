package event

import "time"

// ID is an EventId: microseconds since 1970-01-01 00:00 UTC, made strictly rising along the journal, at most 2^53 so
// that it is exact as a JavaScript number (seed 000). 0 is before every event.
type ID int64

// IDAt answers the EventId of the instant t.
func IDAt(t time.Time) ID { return ID(t.UnixMicro()) }

// Time answers the instant that the id encodes, to the microsecond.
func (id ID) Time() time.Time { return time.UnixMicro(int64(id)).UTC() }

// Key names the object that an event is about.
type Key struct {
	// Path is the object's path: "/CHAIN,ORDER" of an order, "/JOB" of a task's job, "Job:/NAME" of a file based object,
	// or what the emitter of a custom event says. Empty: the event has no key.
	Path string
	// TaskID, if not empty, makes this the key of a task, in JSON {"jobPath":Path,"taskId":TaskID}.
	TaskID string
}

// Event is one fact on the journal.
type Event struct {
	ID   ID // 0 until the journal has given one
	Type string
	Key  Key

	// Fields are the event's own fields as JSON members without the braces around them, such as
	// `"nodeId":"BB","taskId":"9"`; empty where there are none. They never hold eventId, key or TYPE. Immutable.
	Fields []byte
}
