package overview

import (
	"encoding/json"
	"strings"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
)

// TaskCounts is the fold of how many tasks of each state a job has, by the job's path: {"ready":3,"running":1,"failed":2}.
// Whether a queued task waits or is ready is no event; all of them are counted as ready.
func TaskCounts() journal.Fold {
	return journal.Fold{Name: "TaskCounts", Apply: func(state *journal.State, e *event.Event) {
		from, to := "", ""
		switch e.Type {
		case "TaskAdded":
			to = "ready"
		case "TaskStarted":
			from, to = "ready", "running"
		case "TaskEnded": // TaskClosed follows, unless it is tried again
			from, to = "running", "ready"
		case "TaskClosed":
			var closed struct{ State string }
			fields(e, &closed)
			from, to = "ready", closed.State
		default:
			return
		}
		counts := map[string]int64{}
		_ = json.Unmarshal(state.Get(e.Key.Path), &counts) // nothing at first, then written by the line below
		if counts[from]--; counts[from] <= 0 {
			delete(counts, from)
		}
		counts[to]++
		delete(counts, "")
		if value, err := json.Marshal(counts); err == nil {
			state.Put(strings.Clone(e.Key.Path), value)
		}
	}}
}
