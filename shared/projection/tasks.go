package projection

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
)

// TasksName is the name of the projection [Tasks].
const TasksName = "TaskOverview"

// Tasks returns the projection of task events: {"TYPE":"TaskOverview","taskId","jobPath","state"}; [ReadOpenTask] parses it. The
// state is the last event's name without Task: Added, Started or Ended. Closed and removed tasks are removed from it.
//
// Task events are by far the most frequent, and unfinished tasks the most numerous objects, so Apply parses nothing and
// stores only the state.
func Tasks() journal.Fold {
	return journal.Fold{Name: TasksName, Show: showTask, Apply: func(state *journal.State, e *event.Event) {
		if event.FamilyOf(e.Type) != event.TaskEvent {
			return
		}
		key := e.Key.Path + taskSeparator + e.Key.TaskID
		if e.Type == event.TaskClosed || e.Type == event.TaskRemoved {
			state.Delete(key)
			return
		}
		state.Put(key, []byte(strings.TrimPrefix(e.Type, "Task")))
	}}
}

// taskSeparator separates a job's path from a task's id; neither can contain it.
const taskSeparator = "\x00"

// TaskKey returns the event key that a key of the projection [Tasks] stands for.
func TaskKey(key string) event.Key {
	path, id, _ := strings.Cut(key, taskSeparator)
	return event.Key{Path: path, TaskID: id}
}

func showTask(dst []byte, key string, value []byte) []byte {
	task := TaskKey(key)
	dst = append(dst, `{"TYPE":"TaskOverview","taskId":`...)
	dst, _ = jsontext.AppendQuote(dst, task.TaskID)
	dst, _ = jsontext.AppendQuote(append(dst, `,"jobPath":`...), task.Path)
	dst, _ = jsontext.AppendQuote(append(dst, `,"state":`...), value)
	return append(dst, '}')
}

// showsStarted is how showTask ends for a task that runs.
var showsStarted = []byte(`,"state":"Started"}`)

// OpenTask is an unfinished task: an element of the projection [Tasks].
type OpenTask struct {
	event.Key
	Started bool // it runs
}

// ReadOpenTask returns an element of the projection [Tasks] from its key and what a snapshot shows of it.
func ReadOpenTask(key string, shown []byte) OpenTask {
	return OpenTask{TaskKey(key), bytes.HasSuffix(shown, showsStarted)}
}
