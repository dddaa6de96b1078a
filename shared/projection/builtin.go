package projection

import (
	"encoding/json"
	"strings"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/journal"
)

// kind returns a projection of a family's events with an element for each key. For each event it calls step, which updates
// the element, or returns false if the element is to be removed.
func kind[T any](name string, family event.Family, key func(event.Key) string, step func(*T, *event.Event) bool) journal.Fold {
	return journal.Fold{Name: name, Apply: func(state *journal.State, e *event.Event) {
		if event.FamilyOf(e.Type) != family {
			return
		}
		var element T
		at := key(e.Key)
		if before := state.Get(at); before != nil {
			_ = json.Unmarshal(before, &element) // the bytes are those that Put stores below
		}
		if !step(&element, e) {
			state.Delete(at)
			return
		}
		if value, err := json.Marshal(element); err == nil {
			state.Put(strings.Clone(at), value)
		}
	}}
}

func path(k event.Key) string { return k.Path }

// fields decodes the fields of an event into target; fields that target does not name are ignored.
func fields(e *event.Event, target any) {
	text := make([]byte, 0, len(e.Fields)+2)
	_ = json.Unmarshal(append(append(append(text, '{'), e.Fields...), '}'), target) // a field of the wrong type is ignored too
}

// order is an element of the OrderOverview snapshot.
type order struct {
	TYPE       string          `json:"TYPE"`
	Path       string          `json:"path"` // /CHAIN,ORDER
	NodeID     string          `json:"nodeId,omitempty"`
	OrderState string          `json:"orderState"` // Planned, Started, InTask or Setback
	Suspended  bool            `json:"suspended"`
	Setback    json.RawMessage `json:"setback,omitempty"` // until when
	TaskID     string          `json:"taskId,omitempty"`
	Variables  json.RawMessage `json:"variables,omitempty"`
}

// Orders returns the projection of order events. Finished and removed orders are removed from it.
func Orders() journal.Fold {
	return kind("OrderOverview", event.OrderEvent, path, func(o *order, e *event.Event) bool {
		if o.TYPE == "" {
			*o = order{TYPE: "OrderOverview", Path: e.Key.Path, OrderState: "Planned"}
		}
		switch e.Type {
		case "OrderAdded":
			*o = order{TYPE: "OrderOverview", Path: e.Key.Path, OrderState: "Planned"}
			fields(e, &struct {
				NodeID    *string          `json:"nodeId"`
				Variables *json.RawMessage `json:"variables"`
			}{&o.NodeID, &o.Variables})
		case "OrderStarted":
			o.OrderState = "Started"
		case "OrderStepStarted":
			o.OrderState, o.Setback = "InTask", nil
			fields(e, &struct {
				NodeID *string `json:"nodeId"`
				TaskID *string `json:"taskId"`
			}{&o.NodeID, &o.TaskID})
		case "OrderStepEnded":
			o.OrderState, o.TaskID = "Started", ""
		case "OrderSetBack":
			o.OrderState, o.Setback = "Setback", json.RawMessage("true")
			fields(e, &struct {
				NodeID *string          `json:"nodeId"`
				Until  *json.RawMessage `json:"until"`
			}{&o.NodeID, &o.Setback})
		case "OrderNodeChanged":
			o.Setback = nil
			fields(e, &struct {
				NodeID *string `json:"nodeId"`
			}{&o.NodeID})
		case "OrderSuspended":
			o.Suspended = true
		case "OrderResumed":
			o.Suspended = false
		case "OrderFinished", "OrderRemoved":
			return false
		}
		return true
	})
}

// stateful is an element of the JobOverview and JobChainOverview snapshots.
type stateful struct {
	TYPE  string `json:"TYPE"`
	Path  string `json:"path"`
	State string `json:"state,omitempty"`
}

// step updates the element by an event with a field state, as [typed.JobStateChanged] has it.
func (s *stateful) step(name string, e *event.Event) bool {
	s.TYPE, s.Path = name, e.Key.Path
	if state := typed.ReadJobStateChanged(e).State; state != "" {
		s.State = state
	}
	return true
}

// Jobs returns the projection of job events: the state of each job.
func Jobs() journal.Fold {
	return kind("JobOverview", event.JobEvent, path, func(s *stateful, e *event.Event) bool {
		return s.step("JobOverview", e)
	})
}

// JobChains returns the projection of job chain events: the state of each chain.
func JobChains() journal.Fold {
	return kind("JobChainOverview", event.JobChainEvent, path, func(s *stateful, e *event.Event) bool {
		return s.step("JobChainOverview", e)
	})
}

// fileBased is an element of the FileBasedOverview snapshot.
type fileBased struct {
	TYPE           string `json:"TYPE"`
	Path           string `json:"path"` // TYPE:/PATH
	FileBasedState string `json:"fileBasedState"`
}

// FileBased returns the projection of the events of definitions. Removed objects are removed from it.
func FileBased() journal.Fold {
	return kind("FileBasedOverview", event.FileBasedEvent, path, func(f *fileBased, e *event.Event) bool {
		*f = fileBased{"FileBasedOverview", e.Key.Path, strings.TrimPrefix(e.Type, "FileBased")}
		return e.Type != "FileBasedRemoved"
	})
}
