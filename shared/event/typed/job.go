package typed

import "github.com/millrace/millrace/shared/event"

// JobStateChanged is the event of a rule that is set on a job or lifted.
type JobStateChanged struct {
	State string // run, or the rules in force
}

// Event returns the event of the job with that path.
func (j JobStateChanged) Event(path string) event.Event {
	return event.Event{Type: event.JobStateChanged, Key: event.Key{Path: path}, Fields: stateField(j.State)}
}

// ReadJobStateChanged returns the fields of an event of the type [event.JobStateChanged].
func ReadJobStateChanged(e *event.Event) (j JobStateChanged) {
	for name, value := range event.Members(e.Fields) {
		if string(name) == `"state"` {
			j.State = readText[string](value)
		}
	}
	return j
}
