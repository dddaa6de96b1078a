package task

// Status is a state in the words of a dialect.
type Status string

// statuses are the words of the dialects for each state. An order's step has the words of a job.
var statuses = map[State]struct{ sync, event, job Status }{
	Waiting:   {"SCHEDULED", "new", "QUEUED"},
	Ready:     {"SCHEDULED", "scheduled", "QUEUED"},
	Running:   {"RUNNING", "locked", "ACTIVE"},
	Succeeded: {"SUCCESS", "done", "SUCCEEDED"},
	Failed:    {"FAILED", "error", "GIVEN_UP"},
	Rejected:  {"FAILED", "error", "ERROR"},
	Stopped:   {"CANCELED", "error", "STOPPED"},
	Dropped:   {"CANCELED", "error", "DROPPED"},
	Missing:   {"FAILED", "missing", "QUEUED"},
}

// In returns the state in the words of a dialect.
func (s State) In(d Dialect) Status {
	words := statuses[s]
	switch d {
	case Sync:
		return words.sync
	case Event:
		return words.event
	default:
		return words.job
	}
}
