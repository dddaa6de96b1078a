package projection

import (
	"strings"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/journal"
)

// OrdersName is the name of the projection [Orders].
const OrdersName = "OrderOverview"

// stepTask is what the key of a value that has the order's key for the id of a task begins with. Paths begin with a slash.
const stepTask = "@"

// Orders returns the projection of the events of orders; it shows each as an [OrderOverview]. An order is there from
// OrderAdded to OrderFinished or OrderRemoved. Beside the orders it has their numbers by chain, which [ReadOrderCount] parses.
//
// An order that waits for a time stays Planned until it starts, since only events change it: [OrderOverview.AsOf] tells whether its
// time has come.
func Orders() journal.Fold {
	return journal.Fold{Name: OrdersName, Show: showOrder, Apply: func(state *journal.State, e *event.Event) {
		switch event.FamilyOf(e.Type) {
		case event.OrderEvent:
			change(state, strings.Clone(e.Key.Path), e, steps[e.Type])
		case event.TaskEvent:
			if state.Len() > 0 {
				applyTask(state, e)
			}
		}
	}}
}

// step is what an event of some type does to an order.
type step func(o *order, e *event.Event)

// change does a step to the order of that key, or adds or removes the order if the event says so.
func change(state *journal.State, key string, e *event.Event, do step) {
	before := state.Get(key)
	was, is := readOrder(before), order{}
	switch {
	case e.Type == event.OrderAdded:
		is = added(e)
		state.Put(key, is.value())
	case before == nil || do == nil && !ends(e.Type):
		return
	case ends(e.Type):
		state.Delete(key)
	default:
		is = was
		do(&is, e)
		state.Put(key, is.value())
	}
	keepTask(state, key, was.task, is.task)
	count(state, key, e.ID, was.counted(), is.counted())
}

func ends(name string) bool { return name == event.OrderFinished || name == event.OrderRemoved }

// keepTask notes under the id of a step's task whose step it is.
func keepTask(state *journal.State, key string, was, is string) {
	if was == is {
		return
	}
	if was != "" {
		state.Delete(stepTask + was)
	}
	if is != "" {
		state.Put(stepTask+is, []byte(key))
	}
}

// applyTask notes that a step waits for another attempt of its task, or runs again. A step's first attempt begins, and its last
// one ends, with events of the order.
func applyTask(state *journal.State, e *event.Event) {
	if !repeats(e) {
		return
	}
	key := string(state.Get(stepTask + e.Key.TaskID))
	if key == "" {
		return
	}
	change(state, key, e, func(o *order, e *event.Event) {
		o.state = waitingInTask
		if e.Type == event.TaskStarted {
			o.state = inTaskProcess
		}
	})
}

// repeats reports whether an event of a task may begin another attempt, or the wait for one.
func repeats(e *event.Event) bool {
	return e.Type == event.TaskStarted || e.Type == event.TaskEnded && typed.ReadTaskEnded(e).RetryAt != 0
}
