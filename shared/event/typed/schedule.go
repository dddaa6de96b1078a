package typed

import (
	"strconv"
	"time"

	"github.com/millrace/millrace/shared/event"
)

// ScheduleFired is the event of ticks whose tasks are made. Times are those of the ticks.
type ScheduleFired struct {
	Ticks    int       // how many
	From, At time.Time // the first and the last
}

// Event returns the event of the schedule with that name.
func (s ScheduleFired) Event(schedule string) event.Event {
	fields := strconv.AppendInt(append(make([]byte, 0, 96), `"ticks":`...), int64(s.Ticks), 10)
	fields = event.AppendTime(append(fields, `,"from":`...), s.From)
	fields = event.AppendTime(append(fields, `,"at":`...), s.At)
	return event.Event{Type: "ScheduleFired", Key: ScheduleKey(schedule), Fields: fields}
}

// ScheduleDue is the event of a tick whose time has come, and whose task is the one of its job that is under way from then on. It is told of jobs that
// have one task at a time.
type ScheduleDue struct {
	At int64 // the tick's time, in microseconds since 1970
}

// Event returns the event of the schedule with that name.
func (s ScheduleDue) Event(schedule string) event.Event {
	return event.Event{Type: "ScheduleDue", Key: ScheduleKey(schedule), Fields: appendMicro(append(make([]byte, 0, 48), `"at":`...), s.At)}
}

// ScheduleMissed is the event of ticks that nobody made in time.
type ScheduleMissed struct {
	From, To time.Time // the first and the last
	Misfire  string    // the policy by which they are treated
}

// Event returns the event of the schedule with that name.
func (s ScheduleMissed) Event(schedule string) event.Event {
	fields := event.AppendTime(append(make([]byte, 0, 112), `"from":`...), s.From)
	fields = event.AppendTime(append(fields, `,"to":`...), s.To)
	fields = appendText(append(fields, `,"misfire":`...), s.Misfire)
	return event.Event{Type: "ScheduleMissed", Key: ScheduleKey(schedule), Fields: fields}
}

// ScheduleSkipped is the event of a tick whose task is dropped.
type ScheduleSkipped struct {
	At     int64 // the tick's time, in microseconds since 1970
	Reason string
}

// Event returns the event of the schedule with that name.
func (s ScheduleSkipped) Event(schedule string) event.Event {
	fields := appendMicro(append(make([]byte, 0, 96), `"at":`...), s.At)
	fields = appendText(append(fields, `,"reason":`...), s.Reason)
	return event.Event{Type: "ScheduleSkipped", Key: ScheduleKey(schedule), Fields: fields}
}

// ScheduleKey returns the key of the events of a schedule.
func ScheduleKey(name string) event.Key { return event.Key{Path: "Schedule:/" + name} }
