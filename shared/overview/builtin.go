package overview

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
)

// kind makes a fold of the events of a family: an element for each key, changed by step, which answers false when the
// object leaves.
func kind[T any](name string, family event.Family, key func(event.Key) string, step func(*T, *event.Event) bool) journal.Fold {
	return journal.Fold{Name: name, Apply: func(state *journal.State, e *event.Event) {
		if event.FamilyOf(e.Type) != family {
			return
		}
		var element T
		at := key(e.Key)
		if before := state.Get(at); before != nil {
			_ = json.Unmarshal(before, &element) // written by the line below
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

// fields reads what an event says into the members of target that it names.
func fields(e *event.Event, target any) {
	text := make([]byte, 0, len(e.Fields)+2)
	_ = json.Unmarshal(append(append(append(text, '{'), e.Fields...), '}'), target) // other members and types are left
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

// Orders is the fold of order events. Finished and removed orders leave.
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

func (s *stateful) step(name string, e *event.Event) bool {
	s.TYPE, s.Path = name, e.Key.Path
	fields(e, &struct {
		State *string `json:"state"`
	}{&s.State})
	return true
}

// Jobs is the fold of job events.
func Jobs() journal.Fold {
	return kind("JobOverview", event.JobEvent, path, func(s *stateful, e *event.Event) bool {
		return s.step("JobOverview", e)
	})
}

// JobChains is the fold of job chain events.
func JobChains() journal.Fold {
	return kind("JobChainOverview", event.JobChainEvent, path, func(s *stateful, e *event.Event) bool {
		return s.step("JobChainOverview", e)
	})
}

// TasksName is the name of the fold [Tasks].
const TasksName = "TaskOverview"

// Tasks is the fold of task events: {"TYPE":"TaskOverview","taskId","jobPath","state"}, the state being the last event's
// name without Task: Added, Started or Ended. Closed and removed tasks leave.
//
// Task events are the most frequent ones by far, and unfinished tasks the most numerous objects, so that nothing is parsed
// here and only the state is kept.
func Tasks() journal.Fold {
	return journal.Fold{Name: TasksName, Show: showTask, Apply: func(state *journal.State, e *event.Event) {
		if event.FamilyOf(e.Type) != event.TaskEvent {
			return
		}
		key := e.Key.Path + taskSeparator + e.Key.TaskID
		if e.Type == "TaskClosed" || e.Type == "TaskRemoved" {
			state.Delete(key)
			return
		}
		state.Put(key, []byte(strings.TrimPrefix(e.Type, "Task")))
	}}
}

// taskSeparator stands between a job's path and a task's id, neither of which can have it.
const taskSeparator = "\x00"

// TaskKey reads a key of the fold [Tasks].
func TaskKey(key string) event.Key {
	path, id, _ := strings.Cut(key, taskSeparator)
	return event.Key{Path: path, TaskID: id}
}

// IsStarted reports whether a task runs, by what is shown of it in the fold [Tasks].
func IsStarted(shown []byte) bool { return bytes.HasSuffix(shown, []byte(`"state":"Started"}`)) }

func showTask(dst []byte, key string, value []byte) []byte {
	task := TaskKey(key)
	dst = append(dst, `{"TYPE":"TaskOverview","taskId":`...)
	dst, _ = jsontext.AppendQuote(dst, task.TaskID)
	dst, _ = jsontext.AppendQuote(append(dst, `,"jobPath":`...), task.Path)
	dst, _ = jsontext.AppendQuote(append(dst, `,"state":`...), value)
	return append(dst, '}')
}

// fileBased is an element of the FileBasedOverview snapshot.
type fileBased struct {
	TYPE           string `json:"TYPE"`
	Path           string `json:"path"` // TYPE:/PATH
	FileBasedState string `json:"fileBasedState"`
}

// FileBased is the fold of the definitions' events. Removed ones leave.
func FileBased() journal.Fold {
	return kind("FileBasedOverview", event.FileBasedEvent, path, func(f *fileBased, e *event.Event) bool {
		*f = fileBased{"FileBasedOverview", e.Key.Path, strings.TrimPrefix(e.Type, "FileBased")}
		return e.Type != "FileBasedRemoved"
	})
}
