package task

// Status is a state in a dialect's words.
type Status string

// statuses are the dialects' words for each state. An order's step is spoken of as a job is.
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

// In answers the state in a dialect's words.
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
