package projection

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
)

// WorkName is the name of the projection [Work].
const WorkName = "Work"

// Done is what has become of a job's tasks: a value of the projection [Work]. Queued and Active are numbers of tasks now,
// the other fields are totals.
type Done struct {
	// Queued is the number of unfinished tasks that do not run, Active that of tasks that run.
	Queued, Active int64
	// Finished counts tasks that succeeded, Failed attempts that failed and are repeated, Cancelled tasks that ended
	// otherwise, except missing ones.
	Finished, Failed, Cancelled int64
	Starts, Waited              int64 // starts, and the time that tasks had waited before them, in microseconds
	Ends, Processed             int64 // successful attempts, and the time that they took, in microseconds
}

// fields returns the numbers in the order of a value. Append new ones at the end.
func (d *Done) fields() [9]*int64 {
	return [...]*int64{&d.Queued, &d.Active, &d.Finished, &d.Failed, &d.Cancelled, &d.Starts, &d.Waited, &d.Ends, &d.Processed}
}

// ReadDone parses a value of the projection [Work]. ok is false for values about single tasks, which [ReadStart] parses.
func ReadDone(key string, value []byte) (d Done, ok bool) {
	if strings.HasPrefix(key, openTask) {
		return d, false
	}
	for i, field := range d.fields() {
		if 8*i+8 <= len(value) {
			*field = int64(binary.LittleEndian.Uint64(value[8*i:]))
		}
	}
	return d, true
}

// ReadStart parses a value of the projection [Work] about a single task: its id and a time in microseconds since 1970: the
// start if the task runs, otherwise the time from which it may start. ok is false for values about jobs.
func ReadStart(key string, value []byte) (id string, at int64, ok bool) {
	id, ok = strings.CutPrefix(key, openTask)
	if !ok || len(value) != 8 {
		return "", 0, false
	}
	return id, int64(binary.LittleEndian.Uint64(value)), true
}

func (d *Done) value() []byte {
	value := make([]byte, 0, 8*len(d.fields()))
	for _, field := range d.fields() {
		value = binary.LittleEndian.AppendUint64(value, uint64(*field))
	}
	return value
}

// openTask begins the keys of single tasks, of which a start or due time is stored; a job's path begins with /.
const openTask = "task "

// Work returns the projection with the amount and duration of work, by the job's path; [ReadDone] parses its values. A
// task waits from the time when it may start: its creation, which its id contains, the time that was asked for, or the
// time of its next attempt. Times are those of the events. Single tasks are stored only while they run or wait for a time.
func Work() journal.Fold {
	return journal.Fold{Name: WorkName, Apply: func(state *journal.State, e *event.Event) {
		switch e.Type {
		case "TaskAdded", "TaskStarted", "TaskEnded", "TaskClosed":
			work(state, e)
		}
	}}
}

func work(state *journal.State, e *event.Event) {
	before := state.Get(e.Key.Path)
	d, _ := ReadDone(e.Key.Path, before)
	task := openTask + e.Key.TaskID
	switch e.Type {
	case "TaskAdded":
		d.Queued++
		remember(state, task, timeAtEnd(e.Fields, `"notBefore":"`))
	case "TaskStarted":
		d.Queued, d.Active = d.Queued-1, d.Active+1
		since := remembered(state, task)
		if since == 0 {
			since = CreatedAt(e.Key.TaskID)
		}
		if since > 0 {
			d.Starts, d.Waited = d.Starts+1, d.Waited+max(int64(e.ID)-since, 0)
		}
		remember(state, task, int64(e.ID))
	case "TaskEnded": // TaskClosed follows, unless there is another attempt
		d.Queued, d.Active = d.Queued+1, d.Active-1
		d.ended(e, remembered(state, task))
		state.Delete(task)
		if again := timeAtEnd(e.Fields, `"retryAt":"`); again != 0 {
			remember(state, task, max(again, int64(e.ID)))
		}
	case "TaskClosed":
		d.Queued--
		d.closed(stateIn(e.Fields))
		state.Delete(task)
	}
	path := e.Key.Path
	if before == nil {
		path = strings.Clone(path) // must not keep the event's text in memory
	}
	state.Put(path, d.value())
}

func (d *Done) ended(e *event.Event, started int64) {
	switch {
	case bytes.Contains(e.Fields, []byte(`"outcome":"again"`)): // the target asked to come back later, which is no attempt
	case bytes.Contains(e.Fields, []byte(`"retryAt":`)):
		d.Failed++
	case started > 0 && bytes.Contains(e.Fields, []byte(`"outcome":"ok"`)):
		d.Ends, d.Processed = d.Ends+1, d.Processed+max(int64(e.ID)-started, 0)
	}
}

func (d *Done) closed(state string) {
	switch state {
	case "succeeded":
		d.Finished++
	case "missing": // there was no work to cancel
	default:
		d.Cancelled++
	}
}

func remember(state *journal.State, task string, at int64) {
	if at != 0 {
		state.Put(task, binary.LittleEndian.AppendUint64(nil, uint64(at)))
	}
}

func remembered(state *journal.State, task string) int64 {
	if value := state.Get(task); len(value) == 8 {
		return int64(binary.LittleEndian.Uint64(value))
	}
	return 0
}

// timeAtEnd returns the time in the last of an event's fields, in microseconds since 1970; 0 if that field is not there.
func timeAtEnd(fields []byte, name string) int64 {
	at := bytes.LastIndex(fields, []byte(name))
	if at < 0 {
		return 0
	}
	text, _, _ := bytes.Cut(fields[at+len(name):], []byte{'"'})
	when, err := time.Parse(time.RFC3339, string(text))
	if err != nil {
		return 0
	}
	return when.UnixMicro()
}

// CreatedAt returns a task's creation time from its id, in microseconds since 1970; 0 if the id does not end in a UUID of
// version 7 whose 12 bits after the version are the microseconds within the millisecond.
func CreatedAt(id string) int64 {
	const length = 36
	if len(id) < length {
		return 0
	}
	uuid := id[len(id)-length:]
	milli, bad := strconv.ParseInt(uuid[:8]+uuid[9:13], 16, 64)
	micro, worse := strconv.ParseInt(uuid[15:18], 16, 64)
	if bad != nil || worse != nil {
		return 0
	}
	return milli*1000 + micro
}
