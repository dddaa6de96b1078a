package typed

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/millrace/millrace/shared/event"
)

// OrderAdded is the event of a new order.
type OrderAdded struct {
	NodeID    string         `json:"nodeId"`             // where it begins
	Version   int            `json:"version"`            // of the chain, from 1
	At        event.Time     `json:"at,omitzero"`        // the earliest start; zero: at once
	Variables jsontext.Value `json:"variables,omitzero"` // an object
	Parent    string         `json:"parent,omitzero"`    // of a fork's child: path of the order that forked
	Permanent bool           `json:"permanent,omitzero"` // a schedule made it: it goes back to its first node at its end
	File      bool           `json:"file,omitzero"`      // a file made it
}

// OrderStarted is the event of an order whose first step begins. It has no fields.
type OrderStarted struct{}

// OrderStepStarted is the event of a step that begins.
type OrderStepStarted struct {
	NodeID string `json:"nodeId"`
	TaskID string `json:"taskId"`
}

// OrderStepEnded is the event of a step's end.
type OrderStepEnded struct {
	Transition NodeTransition `json:"nodeTransition"`
	Variables  jsontext.Value `json:"variables,omitzero"` // all of the order's, if the step has changed any
}

// NodeTransition says what a step's end means for its order, as in JobScheduler.
type NodeTransition struct {
	Type       string `json:"TYPE"`                // Success, Error, or Keep: the order stays at its node
	ReturnCode int    `json:"returnCode,omitzero"` // of an error
}

// The types of transitions.
const (
	Success = "Success"
	Failure = "Error"
	Keep    = "Keep"
)

// OrderSetBack is the event of an order whose step is repeated.
type OrderSetBack struct {
	NodeID string     `json:"nodeId"`
	Until  event.Time `json:"until"` // when the step is repeated
	Count  int        `json:"count"` // setbacks in a row, from 1
}

// OrderNodeChanged is the event of an order that has come to another node, or to the same one again. A setback, and whatever the order
// waited for, is over then.
type OrderNodeChanged struct {
	NodeID     string     `json:"nodeId"`
	FromNodeID string     `json:"fromNodeId"`
	At         event.Time `json:"at,omitzero"` // the earliest start of the step there; zero: at once
}

// OrderSuspended is the event of an order that does not go on until somebody resumes it. It comes before the OrderNodeChanged of
// the same moment. One that was blacklisted, and is suspended without being so, is not at its end any more.
type OrderSuspended struct {
	Blacklisted bool `json:"blacklisted,omitzero"` // it is at its end: resuming it removes it
}

// OrderResumed is the event of an order that goes on, or whose start is another one. A step under way, a prompt, a wait for an event
// or a time, and a join are not affected.
type OrderResumed struct {
	At        event.Time     `json:"at,omitzero"`        // the earliest start of its step; zero: at once, which ends a setback
	Variables jsontext.Value `json:"variables,omitzero"` // all of the order's, if the act has changed any
}

// OrderFinished is the event of an order that has come to its end. A permanent order goes on at its first node, and
// OrderAdded follows.
type OrderFinished struct {
	NodeID string `json:"nodeId"`
}

// OrderRemoved is the event of an order that was taken away. It has no fields.
type OrderRemoved struct{}

// OrderForked is the event of an order that waits for its children.
type OrderForked struct {
	Children int `json:"children"`
}

// OrderJoined is the event of an order whose children have ended, as far as it waits for them.
type OrderJoined struct {
	Succeeded int `json:"succeeded"`
	Failed    int `json:"failed"`
}

// OrderPrompted is the event of a question to a person.
type OrderPrompted struct {
	NodeID   string     `json:"nodeId"`
	Deadline event.Time `json:"deadline,omitzero"` // zero: none
}

// OrderAnswered is the event of an answer. Who gave it is the event's actor.
type OrderAnswered struct {
	Answer  string `json:"answer"`
	Comment string `json:"comment,omitzero"`
}

// OrderWaiting is the event of an order that waits at a node.
type OrderWaiting struct {
	NodeID string     `json:"nodeId"`
	For    string     `json:"for"`            // one of the constants below
	Name   string     `json:"name,omitzero"`  // of the lock, or the type of the event
	Until  event.Time `json:"until,omitzero"` // when the wait ends at the latest; zero: never
}

// What an order may wait for.
const (
	ForEvent     = "event"
	ForTime      = "time"
	ForLock      = "lock"
	ForMaxOrders = "max_orders"
	ForChain     = "chain" // which is stopped
	ForNode      = "node"  // which is stopped
	ForFile      = "file"  // which is to be put away; the order is at its end
)

// OrderMoved is the event of an order that goes on by another version of its chain.
type OrderMoved struct {
	Version int    `json:"version"`
	NodeID  string `json:"nodeId"` // where it is
}

// JobChainStateChanged is the event of a chain that is stopped or started.
type JobChainStateChanged struct {
	State string `json:"state"` // running or stopped
}

// JobChainNodeActionChanged is the event of a node whose action is changed.
type JobChainNodeActionChanged struct {
	NodeID string `json:"nodeId"`
	Action string `json:"action"` // process, stop or next_state
}

// NodeAction is what a node of a chain does with orders.
type NodeAction struct {
	NodeID string `json:"nodeId"`
	Action string `json:"action"` // process, stop or next_state
}

// ChainDeclared are the fields of FileBasedAdded and FileBasedReplaced of a job chain.
type ChainDeclared struct {
	Nodes []NodeAction `json:"nodes,omitempty"` // whose declared action is not process, in the order of their ids
}

// OrderEvent returns the event of that type, about the order with that path, whose fields are those of fields, a struct of this
// package.
func OrderEvent(name, path string, fields any) event.Event {
	text, err := json.Marshal(fields)
	if err != nil {
		panic(err) // structs of this package can be written
	}
	e := event.Event{Type: name, Key: event.Key{Path: path}}
	if len(text) > len("{}") {
		e.Fields = text[1 : len(text)-1]
	}
	return e
}

// ReadOrder reads the fields of an event of an order or a job chain. It ignores fields that T does not have; the result is the zero
// value if one has the wrong type.
func ReadOrder[T any](e *event.Event) (fields T) {
	text := make([]byte, 0, len(e.Fields)+2)
	text = append(append(append(text, '{'), e.Fields...), '}')
	if err := json.Unmarshal(text, &fields); err != nil {
		var none T
		return none
	}
	return fields
}
