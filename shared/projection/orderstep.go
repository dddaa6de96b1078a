package projection

import (
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
)

// steps are what events do to an order that is there. Those that add and remove it are not among them.
var steps = map[string]step{
	event.OrderStarted: func(o *order, e *event.Event) {
		o.startedAt = int64(e.ID)
		if o.state == notPlanned || o.state == planned {
			o.ready(0)
		}
	},
	event.OrderStepStarted: func(o *order, e *event.Event) {
		is := typed.ReadOrder[typed.OrderStepStarted](e)
		o.leave()
		o.state, o.node, o.task = inTaskProcess, is.NodeID, is.TaskID
	},
	event.OrderStepEnded: func(o *order, e *event.Event) {
		o.change(typed.ReadOrder[typed.OrderStepEnded](e).Variables)
		o.ready(0)
	},
	event.OrderSetBack: func(o *order, e *event.Event) {
		is := typed.ReadOrder[typed.OrderSetBack](e)
		o.leave()
		o.state, o.node, o.at = setBack, is.NodeID, micro(is.Until)
	},
	event.OrderNodeChanged: nodeChanged,
	event.OrderSuspended:   suspend,
	event.OrderResumed:     resume,
	event.OrderForked:      func(o *order, _ *event.Event) { o.hold(joins, 0) },
	event.OrderJoined:      func(o *order, _ *event.Event) { o.ready(0) },
	event.OrderPrompted: func(o *order, e *event.Event) {
		is := typed.ReadOrder[typed.OrderPrompted](e)
		o.node = is.NodeID
		o.hold(prompted, micro(is.Deadline))
	},
	event.OrderAnswered: func(o *order, _ *event.Event) { o.ready(0) },
	event.OrderWaiting:  wait,
	event.OrderMoved: func(o *order, e *event.Event) {
		is := typed.ReadOrder[typed.OrderMoved](e)
		o.version, o.node = max(1, int64(is.Version)), is.NodeID
	},
}

// added returns a new order.
func added(e *event.Event) (o order) {
	is := typed.ReadOrder[typed.OrderAdded](e)
	o.version, o.node = max(1, int64(is.Version)), is.NodeID
	if is.Permanent {
		o.flags |= permanent
	}
	if is.File {
		o.flags |= file
	}
	o.change(is.Variables)
	if o.ready(micro(is.At)); is.Permanent && is.At.IsZero() {
		o.state = notPlanned // until its schedule starts it
	}
	return o
}

// leave ends what the order does or waits for.
func (o *order) leave() {
	o.flags &^= held
	o.at, o.until, o.task = 0, 0, ""
}

// ready lets the order wait for its step, from a time on; 0: at once.
func (o *order) ready(at int64) {
	o.leave()
	o.state, o.at = due, at
	switch {
	case o.startedAt != 0:
	case o.is(suspended):
		o.state = notPlanned
	case at != 0:
		o.state = planned
	}
}

// hold lets the order wait at its node without a step.
func (o *order) hold(why orderFlags, until int64) {
	o.leave()
	o.state, o.until = waitingForResource, until
	o.flags |= why
}

func (o *order) change(variables []byte) {
	if variables != nil {
		o.variables = variables
	}
}

// nodeChanged: an order that has come to its end and stays there is blacklisted before it changes its node.
func nodeChanged(o *order, e *event.Event) {
	is := typed.ReadOrder[typed.OrderNodeChanged](e)
	o.node = is.NodeID
	if o.state != blacklisted {
		o.ready(micro(is.At))
	}
}

// suspend: an order that was blacklisted and is suspended anew is not at its end any more.
func suspend(o *order, e *event.Event) {
	o.flags |= suspended
	switch {
	case typed.ReadOrder[typed.OrderSuspended](e).Blacklisted:
		o.leave()
		o.state = blacklisted
	case o.state == blacklisted || o.startedAt == 0 && (o.state == planned || o.state == due):
		o.ready(0)
	}
}

// resume: a step under way, a prompt, a wait and a join go on as they were.
func resume(o *order, e *event.Event) {
	is := typed.ReadOrder[typed.OrderResumed](e)
	o.flags &^= suspended
	o.change(is.Variables)
	switch {
	case o.is(held) || o.state == inTaskProcess || o.state == waitingInTask:
	case o.state == setBack && !is.At.IsZero():
		o.at = micro(is.At)
	default:
		o.ready(micro(is.At))
	}
}

func wait(o *order, e *event.Event) {
	is := typed.ReadOrder[typed.OrderWaiting](e)
	o.node = is.NodeID
	switch is.For {
	case typed.ForEvent, typed.ForTime:
		o.hold(waits, micro(is.Until))
	default:
		o.hold(0, 0)
	}
}
