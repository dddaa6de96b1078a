package projection

import (
	"encoding/binary"
	"encoding/json"
	"slices"
	"strings"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
)

// TaskCountsName is the name of the projection [TaskCounts].
const TaskCountsName = "TaskCounts"

// counted are the states in which tasks are counted, in the order of a value's numbers. Append new ones at the end.
var counted = []string{"ready", "running", "succeeded", "failed", "rejected", "stopped", "dropped", "missing"}

// TaskCounts returns the projection with the number of tasks of each state, by the job's path; [ReadTaskCounts] parses its
// values. Whether a queued task waits or is ready is no event, so all queued tasks count as ready. Tasks removed from the
// history are not counted.
func TaskCounts() journal.Fold {
	return journal.Fold{Name: TaskCountsName, Apply: func(state *journal.State, e *event.Event) {
		from, to := "", ""
		switch e.Type {
		case "TaskAdded":
			to = "ready"
		case "TaskStarted":
			from, to = "ready", "running"
		case "TaskEnded": // TaskClosed follows, unless there is another attempt
			from, to = "running", "ready"
		case "TaskClosed":
			from, to = "ready", stateIn(e.Fields)
		case "TaskRemoved": // with a state it is a removal from the history, in which the task was counted
			from = stateIn(e.Fields)
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

func add(value []byte, name string, n uint64) {
	if at := slices.Index(counted, name); at >= 0 {
		number := value[8*at:]
		binary.LittleEndian.PutUint64(number, binary.LittleEndian.Uint64(number)+n)
	}
}

// stateIn returns the state in an event's fields, of which it is usually the first; "" if there is none.
func stateIn(fields []byte) string {
	text, ok := strings.CutPrefix(string(fields), `"state":"`)
	if name, _, ends := strings.Cut(text, `"`); ok && ends {
		return name
	}
	var closed struct {
		State string `json:"state"`
	}
	_ = json.Unmarshal(slices.Concat([]byte{'{'}, fields, []byte{'}'}), &closed) // stays empty if there is none
	return closed.State
}

// ReadTaskCounts returns the number of tasks in each state from a value of the projection [TaskCounts]. States without
// tasks are absent.
func ReadTaskCounts(value []byte) map[string]int64 {
	counts := map[string]int64{}
	for i, name := range counted {
		if 8*i+8 > len(value) {
			break
		}
		if n := int64(binary.LittleEndian.Uint64(value[8*i:])); n > 0 {
			counts[name] = n
		}
	}
	return counts
}
