package typed

import "github.com/millrace/millrace/shared/event"

// The states of a server, in the events of its life.
const (
	ServerRunning  = "running"  // it takes requests and runs tasks
	ServerStopping = "stopping" // it takes no more
)

// SchedulerStateChanged returns the event of a server that comes to a state.
func SchedulerStateChanged(state string) event.Event {
	return event.Event{Type: event.SchedulerStateChanged, Fields: stateField(state)}
}
