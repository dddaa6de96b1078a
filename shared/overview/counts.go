package overview

import (
	"encoding/binary"
	"encoding/json"
	"slices"
	"strings"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
)

// TaskCountsName is the name of the fold [TaskCounts].
const TaskCountsName = "TaskCounts"

// counted are the states that tasks are counted in, in the order of a value's numbers. New ones are added at the end.
var counted = []string{"ready", "running", "succeeded", "failed", "rejected", "stopped", "dropped", "missing"}

// TaskCounts is the fold of how many tasks of each state a job has, by the job's path; [ReadTaskCounts] reads its values.
// Whether a queued task waits or is ready is no event: all of them are counted as ready. What has left the history is not
// counted.
func TaskCounts() journal.Fold {
	return journal.Fold{Name: TaskCountsName, Apply: func(state *journal.State, e *event.Event) {
		from, to := "", ""
		switch e.Type {
		case "TaskAdded":
			to = "ready"
		case "TaskStarted":
			from, to = "ready", "running"
		case "TaskEnded": // TaskClosed follows, unless it is tried again
			from, to = "running", "ready"
		case "TaskClosed":
			from, to = "ready", stateIn(e.Fields)
		case "TaskRemoved": // with a state: out of the history, in which it was counted
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
			e.Key.Path = strings.Clone(e.Key.Path) // the event's text is not to be kept
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

// stateIn reads the state that an event says, which is its first field; "": it says none.
func stateIn(fields []byte) string {
	text, ok := strings.CutPrefix(string(fields), `"state":"`)
	if name, _, ends := strings.Cut(text, `"`); ok && ends {
		return name
	}
	var closed struct {
		State string `json:"state"`
	}
	_ = json.Unmarshal(slices.Concat([]byte{'{'}, fields, []byte{'}'}), &closed) // without one it counts for nothing
	return closed.State
}

// ReadTaskCounts answers how many tasks a value of the fold [TaskCounts] counts in each state that has any.
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
