package typed

import (
	"strconv"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/task"
)

// TaskAdded is the event of a new task.
type TaskAdded struct {
	Queue     string // the queue's name
	Priority  int64
	NotBefore int64 // the earliest start, in microseconds since 1970; 0 or less: at once
}

// Event returns the event of the task with that key.
func (t TaskAdded) Event(key event.Key) event.Event {
	fields := append(make([]byte, 0, 96), `"queue":`...)
	fields = appendText(fields, t.Queue)
	fields = strconv.AppendInt(append(fields, `,"priority":`...), t.Priority, 10)
	if t.NotBefore > 0 {
		fields = appendMicro(append(fields, `,"notBefore":`...), t.NotBefore)
	}
	return event.Event{Type: event.TaskAdded, Key: key, Fields: fields}
}

// ReadTaskAdded returns the fields of an event of the type [event.TaskAdded].
func ReadTaskAdded(e *event.Event) (t TaskAdded) {
	for name, value := range event.Members(e.Fields) {
		switch string(name) {
		case `"queue"`:
			t.Queue = readText[string](value)
		case `"priority"`:
			t.Priority = readInt(value)
		case `"notBefore"`:
			t.NotBefore = readMicro(value)
		}
	}
	return t
}

// TaskStarted is the event of an attempt's start.
type TaskStarted struct {
	Attempt  int    // from 1
	Instance string // who runs it; may be empty
}

// Event returns the event of the task with that key.
func (t TaskStarted) Event(key event.Key) event.Event {
	fields := append(make([]byte, 0, 64), `"attempt":`...)
	fields = strconv.AppendInt(fields, int64(t.Attempt), 10)
	if t.Instance != "" {
		fields = appendText(append(fields, `,"instance":`...), t.Instance)
	}
	return event.Event{Type: event.TaskStarted, Key: key, Fields: fields}
}

// ReadTaskStarted returns the fields of an event of the type [event.TaskStarted].
func ReadTaskStarted(e *event.Event) (t TaskStarted) {
	for name, value := range event.Members(e.Fields) {
		switch string(name) {
		case `"attempt"`:
			t.Attempt = int(readInt(value))
		case `"instance"`:
			t.Instance = readText[string](value)
		}
	}
	return t
}

// TaskEnded is the event of an attempt's end. [TaskClosed] follows, unless there is another attempt.
type TaskEnded struct {
	Outcome    Outcome
	ReturnCode int   // it is a field of a success, and if it is not 0: otherwise 0 would read as a success
	RetryAt    int64 // from when there is another attempt, in microseconds since 1970; 0: there is none
}

// Event returns the event of the task with that key.
func (t TaskEnded) Event(key event.Key) event.Event {
	fields := make([]byte, 0, 96)
	if t.Outcome == OK || t.ReturnCode != 0 {
		fields = append(strconv.AppendInt(append(fields, `"returnCode":`...), int64(t.ReturnCode), 10), ',')
	}
	fields = appendText(append(fields, `"outcome":`...), string(t.Outcome))
	if t.RetryAt != 0 {
		fields = appendMicro(append(fields, `,"retryAt":`...), t.RetryAt)
	}
	return event.Event{Type: event.TaskEnded, Key: key, Fields: fields}
}

// ReadTaskEnded returns the fields of an event of the type [event.TaskEnded].
func ReadTaskEnded(e *event.Event) (t TaskEnded) {
	for name, value := range event.Members(e.Fields) {
		switch string(name) {
		case `"returnCode"`:
			t.ReturnCode = int(readInt(value))
		case `"outcome"`:
			t.Outcome = readText(value, outcomes[:]...)
		case `"retryAt"`:
			t.RetryAt = readMicro(value)
		}
	}
	return t
}

// TaskClosed is the event of a task that is finished.
type TaskClosed struct {
	State task.State // a final one
}

// Event returns the event of the task with that key.
func (t TaskClosed) Event(key event.Key) event.Event {
	return event.Event{Type: event.TaskClosed, Key: key, Fields: stateField(string(t.State))}
}

// ReadTaskClosed returns the fields of an event of the type [event.TaskClosed].
func ReadTaskClosed(e *event.Event) TaskClosed { return TaskClosed{readState(e.Fields)} }

// TaskRemoved is the event of a task that is gone.
type TaskRemoved struct {
	State task.State // of a task that leaves the history, its last; empty: the task was dropped before it was finished
}

// Event returns the event of the task with that key.
func (t TaskRemoved) Event(key event.Key) event.Event {
	e := event.Event{Type: event.TaskRemoved, Key: key}
	if t.State != "" {
		e.Fields = stateField(string(t.State))
	}
	return e
}

// ReadTaskRemoved returns the fields of an event of the type [event.TaskRemoved].
func ReadTaskRemoved(e *event.Event) TaskRemoved { return TaskRemoved{readState(e.Fields)} }

var finalStates = [...]task.State{task.Succeeded, task.Failed, task.Rejected, task.Stopped, task.Dropped, task.Missing}

func readState(fields []byte) (state task.State) {
	for name, value := range event.Members(fields) {
		if string(name) == `"state"` {
			state = readText(value, finalStates[:]...)
		}
	}
	return state
}
