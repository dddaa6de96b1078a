package projection

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/task"
)

// TaskCountsName is the name of the projection [TaskCounts].
const TaskCountsName = "TaskCounts"

// counted are the states in which tasks are counted, in the order of a value's numbers. Append new ones at the end.
var counted = []task.State{
	task.Ready, task.Running, task.Succeeded, task.Failed, task.Rejected, task.Stopped, task.Dropped, task.Missing,
}

// TaskCounts returns the projection with the number of tasks of each state, by the job's path; [ReadTaskCounts] parses its
// values. Whether a queued task waits or is ready is no event, so all queued tasks count as ready. Tasks removed from the
// history are not counted.
func TaskCounts() journal.Fold {
	return journal.Fold{Name: TaskCountsName, Apply: func(state *journal.State, e *event.Event) {
		var from, to task.State // empty: none
		switch e.Type {
		case event.TaskAdded:
			to = task.Ready
		case event.TaskStarted:
			from, to = task.Ready, task.Running
		case event.TaskEnded: // TaskClosed follows, unless there is another attempt
			from, to = task.Running, task.Ready
		case event.TaskClosed:
			from, to = task.Ready, typed.ReadTaskClosed(e).State
		case event.TaskRemoved: // with a state it is a removal from the history, in which the task was counted
			from = typed.ReadTaskRemoved(e).State
		default:
			return
		}
		before := state.Get(e.Key.Path)
		after := make([]byte, 8*len(counted))
		copy(after, before)
		add(after, from, ^uint64(0))
		add(after, to, 1)
		if before == nil {
			e.Key.Path = strings.Clone(e.Key.Path) // must not keep the event's text in memory
		}
		state.Put(e.Key.Path, after)
	}}
}

func add(value []byte, state task.State, n uint64) {
	if at := slices.Index(counted, state); at >= 0 {
		number := value[8*at:]
		binary.LittleEndian.PutUint64(number, binary.LittleEndian.Uint64(number)+n)
	}
}

// ReadTaskCounts returns the number of tasks in each state from a value of the projection [TaskCounts]. States without
// tasks are absent.
func ReadTaskCounts(value []byte) map[task.State]int64 {
	counts := map[task.State]int64{}
	for i, state := range counted {
		if 8*i+8 > len(value) {
			break
		}
		if n := int64(binary.LittleEndian.Uint64(value[8*i:])); n > 0 {
			counts[state] = n
		}
	}
	return counts
}
