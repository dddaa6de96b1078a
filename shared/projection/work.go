package projection

import (
	"cmp"
	"encoding/binary"
	"strings"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/task"
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

// ReadDone parses a value of the projection [Work]. ok is false for values about single tasks, see [ReadTimed] and [RunningTask].
func ReadDone(key string, value []byte) (d Done, ok bool) {
	if !strings.HasPrefix(key, "/") {
		return d, false
	}
	for i, field := range d.fields() {
		if 8*i+8 <= len(value) {
			*field = int64(binary.LittleEndian.Uint64(value[8*i:]))
		}
	}
	return d, true
}

// Timed is a task that waits for a time: a value of the projection [Work].
type Timed struct {
	TaskID string
	At     int64 // the time from which it may start, in microseconds since 1970
}

// ReadTimed parses a value of the projection [Work]. ok is false for values about jobs and tasks that run.
func ReadTimed(key string, value []byte) (t Timed, ok bool) {
	id, ok := strings.CutPrefix(key, timedTask)
	if !ok || len(value) != 8 {
		return Timed{}, false
	}
	return Timed{id, int64(binary.LittleEndian.Uint64(value))}, true
}

func (d *Done) value() []byte {
	value := make([]byte, 0, 8*len(d.fields()))
	for _, field := range d.fields() {
		value = binary.LittleEndian.AppendUint64(value, uint64(*field))
	}
	return value
}

// What the keys of single tasks begin with; a job's path begins with /.
const (
	timedTask   = "task " // with the time from which it may start; of one that was started before 0.3.0, the start
	startedTask = "run "  // with the start, in microseconds since 1970
)

// RunningTasks are the values of the projection [Work] about tasks that run; [RunningTask] parses them.
func RunningTasks() journal.Part { return journal.Part{Prefixes: []string{startedTask}} }

// RunningTask parses one of the values of [RunningTasks]: the task's id, and the start of its attempt, in microseconds since 1970.
func RunningTask(key string, value []byte) (id string, since int64) {
	if len(value) == 8 {
		since = int64(binary.LittleEndian.Uint64(value))
	}
	return strings.TrimPrefix(key, startedTask), since
}

// Work returns the projection with the amount and duration of work, by the job's path; [ReadDone] parses its values. A
// task waits from the time when it may start: its creation, which its id contains, the time that was asked for, or the
// time of its next attempt. Times are those of the events. Single tasks are stored only while they run or wait for a time.
func Work() journal.Fold {
	return journal.Fold{Name: WorkName, Apply: func(state *journal.State, e *event.Event) {
		switch e.Type {
		case event.TaskAdded, event.TaskStarted, event.TaskEnded, event.TaskClosed:
			work(state, e)
		}
	}}
}

func work(state *journal.State, e *event.Event) {
	before := state.Get(e.Key.Path)
	d, _ := ReadDone(e.Key.Path, before)
	waits := timedTask + e.Key.TaskID
	switch e.Type {
	case event.TaskAdded:
		d.Queued++
		remember(state, waits, typed.ReadTaskAdded(e).NotBefore)
	case event.TaskStarted:
		d.Queued, d.Active = d.Queued-1, d.Active+1
		since := forget(state, waits)
		if since == 0 {
			since = CreatedAt(e.Key.TaskID)
		}
		if since > 0 {
			d.Starts, d.Waited = d.Starts+1, d.Waited+max(int64(e.ID)-since, 0)
		}
		remember(state, startedTask+e.Key.TaskID, int64(e.ID))
	case event.TaskEnded: // TaskClosed follows, unless there is another attempt
		d.Queued, d.Active = d.Queued+1, d.Active-1
		ended := typed.ReadTaskEnded(e)
		d.ended(ended, int64(e.ID), cmp.Or(forget(state, startedTask+e.Key.TaskID), forget(state, waits)))
		if ended.RetryAt != 0 {
			remember(state, waits, max(ended.RetryAt, int64(e.ID)))
		}
	case event.TaskClosed:
		d.Queued--
		d.closed(typed.ReadTaskClosed(e).State)
		state.Delete(waits)
	}
	path := e.Key.Path
	if before == nil {
		path = strings.Clone(path) // must not keep the event's text in memory
	}
	state.Put(path, d.value())
}

// ended counts the end, at now, of an attempt that started at started, both in microseconds since 1970; started is 0 if that is
// not known.
func (d *Done) ended(e typed.TaskEnded, now, started int64) {
	switch {
	case e.Outcome == typed.Again: // the target asked to come back later, which is no attempt
	case e.RetryAt != 0:
		d.Failed++
	case started > 0 && e.Outcome == typed.OK:
		d.Ends, d.Processed = d.Ends+1, d.Processed+max(now-started, 0)
	}
}

func (d *Done) closed(state task.State) {
	switch state {
	case task.Succeeded:
		d.Finished++
	case task.Missing: // there was no work to cancel
	default:
		d.Cancelled++
	}
}

func remember(state *journal.State, task string, at int64) {
	if at != 0 {
		state.Put(task, binary.LittleEndian.AppendUint64(nil, uint64(at)))
	}
}

// forget removes and returns what is remembered; 0 if there is nothing.
func forget(state *journal.State, task string) (at int64) {
	if value := state.Get(task); len(value) == 8 {
		at = int64(binary.LittleEndian.Uint64(value))
		state.Delete(task)
	}
	return at
}

// CreatedAt returns a task's creation time from its id, in microseconds since 1970; 0 if it is not a task's id.
func CreatedAt(id string) int64 {
	parsed, err := task.ParseID(id)
	if err != nil {
		return 0
	}
	return parsed.Time()
}
