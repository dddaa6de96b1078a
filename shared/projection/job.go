package projection

import (
	"cmp"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/journal"
)

// JobOverview is an element of the snapshot of jobs, as JobScheduler shows them.
type JobOverview struct {
	TYPE           string `json:"TYPE"` // JobOverview
	Path           string `json:"path"`
	FileBasedState string `json:"fileBasedState,omitzero"` // of its definition, as in the snapshot of definitions; empty: it is not declared
	State          string `json:"state"`                   // run, or the rules in force, as in the event of its state
}

// JobsName is the name of the projection [Jobs].
const JobsName = "JobOverview"

// jobKey is what the key of a job's definition begins with; the job's path follows.
const jobKey = "Job:"

// RunningJob is the state of a job without rules.
const RunningJob = "run"

// Jobs returns the projection of jobs, from the events of their definitions, of their states, and of new tasks: a job is known from
// its declaration, its first task, or a rule for it. A job whose definition is removed is forgotten, unless a rule for it is in force;
// its next task makes it known again.
func Jobs() journal.Fold {
	return journal.Fold{Name: JobsName, Apply: func(state *journal.State, e *event.Event) {
		switch event.FamilyOf(e.Type) {
		case event.JobEvent:
			changeJob(state, e.Key.Path, func(j *JobOverview) { j.State = cmp.Or(typed.ReadJobStateChanged(e).State, j.State) })
		case event.TaskEvent:
			if e.Type == event.TaskAdded && state.Get(e.Key.Path) == nil {
				changeJob(state, e.Key.Path, func(*JobOverview) {})
			}
		case event.FileBasedEvent:
			if path, ok := strings.CutPrefix(e.Key.Path, jobKey); ok {
				changeJob(state, path, func(j *JobOverview) { j.FileBasedState = fileBasedState(e) })
			}
		}
	}}
}

// changeJob changes what is known of the job with that path, and forgets it if there is nothing left to know.
func changeJob(state *journal.State, path string, change func(*JobOverview)) {
	j := JobOverview{State: RunningJob}
	if before := state.Get(path); before != nil {
		_ = json.Unmarshal(before, &j) // the bytes are those that Put stores below
	}
	j.TYPE, j.Path = "JobOverview", path
	change(&j)
	if j.FileBasedState == removed {
		j.FileBasedState = ""
		if j.State == RunningJob {
			state.Delete(path)
			return
		}
	}
	if value, err := json.Marshal(j); err == nil {
		state.Put(strings.Clone(path), value)
	}
}

// removed is the state of a definition that is there no more.
const removed = "Removed"

// fileBasedState returns what an event of a definition says of its state.
func fileBasedState(e *event.Event) string { return strings.TrimPrefix(e.Type, "FileBased") }
