package queue

import "github.com/millrace/millrace/shared/event"

// Each event of a task but the first is brought about by the one before it, unless something else ended the task. The version of
// the task's item is where that one is: nothing is read or stored for it.

// causedAt returns the events of a change of a task that was read with that version: the first is brought about by what happened
// to the task last, each further one by the one before it of the task.
func causedAt(version int64, events ...event.Event) []event.Event {
	return causedBy(event.CausedAt(version), events...)
}

// causedBy is causedAt with the cause of the first.
func causedBy(cause event.Cause, events ...event.Event) []event.Event {
	key := events[0].Key
	events[0].Cause = cause
	for i, last := 1, 0; i < len(events); i++ { // between them may be an event of the task's schedule
		events[i].Cause = event.CausedBefore(i - last)
		if events[i].Key == key {
			last = i
		}
	}
	return events
}

// inTurn gives each event of a write that names no cause the one that it follows from: the last before it with its key, or else the
// last before it of an order, or else the first.
func inTurn(events []event.Event) []event.Event {
	order := 0
	for i := range events {
		if e := &events[i]; e.Cause == 0 && i > 0 {
			from := order
			for j := range i {
				if events[j].Key == e.Key {
					from = j
				}
			}
			e.Cause = event.CausedBefore(i - from)
		}
		if event.FamilyOf(events[i].Type) == event.OrderEvent {
			order = i
		}
	}
	return events
}
