package projection

import (
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/millrace/millrace/shared/event"
)

// OrderOverview is an element of the snapshot of orders, as JobScheduler shows them.
type OrderOverview struct {
	TYPE      string          `json:"TYPE"` // OrderOverview
	Path      string          `json:"path"` // /CHAIN,ORDER
	NodeID    string          `json:"nodeId"`
	State     ProcessingState `json:"orderProcessingState"`
	Obstacles []Obstacle      `json:"obstacles"`          // never nil
	StartedAt event.Time      `json:"startedAt,omitzero"` // of its first step
	Version   int             `json:"version"`            // of its chain, from 1
	Variables jsontext.Value  `json:"variables"`          // an object
}

// AsOf makes of the order, as its events tell it, what it is at a time: the one until which it is Planned or Setback may have come by
// then, which no event tells. It is Due since.
func (o *OrderOverview) AsOf(now time.Time) {
	if s := &o.State; (s.Type == Planned || s.Type == SetBack) && !s.At.After(now) {
		s.Type = Due
		o.Obstacles = slices.DeleteFunc(slices.Clone(o.Obstacles), func(o Obstacle) bool { return o.Type == SetBack })
	}
}

// ProcessingState says what an order is doing.
type ProcessingState struct {
	Type   string     `json:"TYPE"`            // one of the constants below
	At     event.Time `json:"at,omitzero"`     // of Planned, Due, Setback: the earliest start of its step, where there is one
	TaskID string     `json:"taskId,omitzero"` // of WaitingInTask, InTaskProcess
}

// What an order may be doing.
const (
	NotPlanned         = "NotPlanned"         // nothing: it has no start, or is suspended before it
	Planned            = "Planned"            // it waits for the time of its start
	Due                = "Due"                // its step waits for a worker, or for the delay of its node
	WaitingInTask      = "WaitingInTask"      // its step waits for another attempt
	InTaskProcess      = "InTaskProcess"      // its step runs
	SetBack            = "Setback"            // it waits for the time after which its step is repeated
	WaitingForResource = "WaitingForResource" // it waits for a lock, for the number of orders in its chain, for something that is stopped, or as its obstacle says
	Blacklisted        = "Blacklisted"        // it has come to its end, and stays until it is resumed
)

// Obstacle is what keeps an order from going on.
type Obstacle struct {
	Type  string     `json:"TYPE"`           // Suspended, Setback, Prompt, Wait or Join
	Until event.Time `json:"until,omitzero"` // when it ends by itself, where it does
}
