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

// inTurn gives each event of a write that names no cause the one that it follows from. Orders has the keys of the orders whose steps
// are added, by the keys of the steps' tasks.
func inTurn(events []event.Event, orders map[event.Key]event.Key) []event.Event {
	for i := range events {
		if e := &events[i]; e.Cause == 0 && i > 0 {
			e.Cause = event.CausedBefore(i - lastFor(events[:i], e.Key, orders[e.Key]))
		}
	}
	return events
}

// lastFor returns which of events one with that key follows from: the last with its key, or else the last of its order, or else the last
// of any order, or else the first.
func lastFor(events []event.Event, key, order event.Key) int {
	own, other := -1, 0
	for i := len(events) - 1; i >= 0; i-- {
		switch e := &events[i]; {
		case e.Key == key:
			return i
		case own < 0 && e.Key == order:
			own = i
		case other == 0 && event.FamilyOf(e.Type) == event.OrderEvent:
			other = i
		}
	}
	if own >= 0 {
		return own
	}
	return other
}
