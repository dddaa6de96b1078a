package projection_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
)

// now is the time of the first event of a test: the events follow by a second.
var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func after(d time.Duration) event.Time { return event.Time{Time: now.Add(d)} }

func order(name string, fields any) event.Event { return typed.OrderEvent(name, "/a/c,1", fields) }

// lived applies events to the projection of orders, each a second after the one before.
func lived(events ...event.Event) *journal.State {
	state := &journal.State{}
	for i := range events {
		e := events[i]
		e.ID = event.IDAt(now.Add(time.Duration(i) * time.Second))
		projection.Orders().Apply(state, &e)
	}
	return state
}

func shown(state *journal.State, key string) string {
	value := state.Get(key)
	if value == nil {
		return ""
	}
	return string(projection.Orders().Show(nil, key, value))
}

// What an order looks like after each of its events. Of a row's text, what follows the path stands here.
func TestOrders(t *testing.T) {
	t.Parallel()
	type row struct {
		event event.Event
		want  string
	}
	const task = "019b76da-a800-7005-8000-000000000000"
	added := row{order(event.OrderAdded, typed.OrderAdded{NodeID: "A", Version: 2, Variables: jsontext.Value(`{"v":[1,"é<"]}`)}),
		`"nodeId":"A","orderProcessingState":{"TYPE":"Due"},"obstacles":[],"version":2,"variables":{"v":[1,"é<"]}`}
	begun := []row{
		{order(event.OrderAdded, typed.OrderAdded{NodeID: "A", Version: 1}),
			`"nodeId":"A","orderProcessingState":{"TYPE":"Due"},"obstacles":[],"version":1,"variables":{}`},
		{order(event.OrderStarted, typed.OrderStarted{}),
			`"nodeId":"A","orderProcessingState":{"TYPE":"Due"},"obstacles":[],"startedAt":"2026-01-01T00:00:01.000000Z","version":1,"variables":{}`},
		{order(event.OrderStepStarted, typed.OrderStepStarted{NodeID: "A", TaskID: task}), as("A", `"InTaskProcess","taskId":"`+task+`"`, ``)},
	}
	ended := order(event.OrderStepEnded, typed.OrderStepEnded{Transition: typed.NodeTransition{Type: typed.Failure, ReturnCode: 1}})
	tests := map[string][]row{
		"a walk": {added,
			{order(event.OrderStarted, typed.OrderStarted{}),
				`"nodeId":"A","orderProcessingState":{"TYPE":"Due"},"obstacles":[],"startedAt":"2026-01-01T00:00:01.000000Z","version":2,"variables":{"v":[1,"é<"]}`},
			{order(event.OrderStepStarted, typed.OrderStepStarted{NodeID: "A", TaskID: task}),
				`"nodeId":"A","orderProcessingState":{"TYPE":"InTaskProcess","taskId":"` + task + `"},"obstacles":[],"startedAt":"2026-01-01T00:00:01.000000Z","version":2,"variables":{"v":[1,"é<"]}`},
			{order(event.OrderStepEnded, typed.OrderStepEnded{Transition: typed.NodeTransition{Type: typed.Success}, Variables: jsontext.Value(`{"v":true}`)}),
				`"nodeId":"A","orderProcessingState":{"TYPE":"Due"},"obstacles":[],"startedAt":"2026-01-01T00:00:01.000000Z","version":2,"variables":{"v":true}`},
			{order(event.OrderNodeChanged, typed.OrderNodeChanged{NodeID: "B", FromNodeID: "A", At: after(time.Hour)}),
				`"nodeId":"B","orderProcessingState":{"TYPE":"Due","at":"2026-01-01T01:00:00.000000Z"},"obstacles":[],"startedAt":"2026-01-01T00:00:01.000000Z","version":2,"variables":{"v":true}`},
			{order(event.OrderMoved, typed.OrderMoved{NodeID: "C", Version: 3}),
				`"nodeId":"C","orderProcessingState":{"TYPE":"Due","at":"2026-01-01T01:00:00.000000Z"},"obstacles":[],"startedAt":"2026-01-01T00:00:01.000000Z","version":3,"variables":{"v":true}`},
			{order(event.OrderFinished, typed.OrderFinished{NodeID: "C"}), ``},
			added, // a permanent order goes on
			{order(event.OrderRemoved, typed.OrderRemoved{}), ``},
			{order(event.OrderNodeChanged, typed.OrderNodeChanged{NodeID: "B", FromNodeID: "A"}), ``}, // it is not there
		},
		"a start": {
			{order(event.OrderAdded, typed.OrderAdded{NodeID: "A", Version: 1, At: after(time.Hour)}), unstarted(`"Planned","at":"2026-01-01T01:00:00.000000Z"`, ``)},
			{order(event.OrderSuspended, typed.OrderSuspended{}), unstarted(`"NotPlanned"`, `{"TYPE":"Suspended"}`)},
			{order(event.OrderResumed, typed.OrderResumed{At: after(time.Hour)}), unstarted(`"Planned","at":"2026-01-01T01:00:00.000000Z"`, ``)},
			{order(event.OrderNodeChanged, typed.OrderNodeChanged{NodeID: "A", FromNodeID: "A"}), unstarted(`"Due"`, ``)},
		},
		"a suspension of what waits": {
			{order(event.OrderAdded, typed.OrderAdded{NodeID: "A", Version: 1}), unstarted(`"Due"`, ``)},
			{order(event.OrderWaiting, typed.OrderWaiting{NodeID: "A", For: typed.ForMaxOrders}), unstarted(`"WaitingForResource"`, ``)},
			{order(event.OrderSuspended, typed.OrderSuspended{}), unstarted(`"WaitingForResource"`, `{"TYPE":"Suspended"}`)},
			{order(event.OrderResumed, typed.OrderResumed{}), unstarted(`"Due"`, ``)},
		},
		"attempts of a task": {begun[0], begun[1], begun[2],
			{attempt(task, typed.TaskEnded{Outcome: typed.Again, RetryAt: 1}.Event), as("A", `"WaitingInTask","taskId":"`+task+`"`, ``)},
			{attempt(task, typed.TaskStarted{Attempt: 1}.Event), as("A", `"InTaskProcess","taskId":"`+task+`"`, ``)},
			{attempt("other", typed.TaskEnded{Outcome: typed.Failed, RetryAt: 1}.Event), as("A", `"InTaskProcess","taskId":"`+task+`"`, ``)},
			{attempt(task, typed.TaskEnded{Outcome: typed.Failed, RetryAt: 1}.Event), as("A", `"WaitingInTask","taskId":"`+task+`"`, ``)},
			{order(event.OrderStepStarted, typed.OrderStepStarted{NodeID: "A", TaskID: task}), as("A", `"InTaskProcess","taskId":"`+task+`"`, ``)},
			{ended, as("A", `"Due"`, ``)},
			{attempt(task, typed.TaskEnded{Outcome: typed.Failed, RetryAt: 1}.Event), as("A", `"Due"`, ``)},
		},
		"a setback": {begun[0], begun[1], begun[2], {ended, as("A", `"Due"`, ``)},
			{order(event.OrderSetBack, typed.OrderSetBack{NodeID: "A", Until: after(time.Minute), Count: 1}),
				as("A", `"Setback","at":"2026-01-01T00:01:00.000000Z"`, `{"TYPE":"Setback","until":"2026-01-01T00:01:00.000000Z"}`)},
			{order(event.OrderSuspended, typed.OrderSuspended{}),
				as("A", `"Setback","at":"2026-01-01T00:01:00.000000Z"`, `{"TYPE":"Suspended"},{"TYPE":"Setback","until":"2026-01-01T00:01:00.000000Z"}`)},
			{order(event.OrderResumed, typed.OrderResumed{At: after(time.Hour), Variables: jsontext.Value(`{}`)}),
				as("A", `"Setback","at":"2026-01-01T01:00:00.000000Z"`, `{"TYPE":"Setback","until":"2026-01-01T01:00:00.000000Z"}`)},
			{order(event.OrderStepStarted, typed.OrderStepStarted{NodeID: "A", TaskID: task}), as("A", `"InTaskProcess","taskId":"`+task+`"`, ``)},
		},
		"a setback that somebody ends": {begun[0], begun[1],
			{order(event.OrderSetBack, typed.OrderSetBack{NodeID: "A", Until: after(time.Minute), Count: 1}),
				as("A", `"Setback","at":"2026-01-01T00:01:00.000000Z"`, `{"TYPE":"Setback","until":"2026-01-01T00:01:00.000000Z"}`)},
			{order(event.OrderResumed, typed.OrderResumed{}), as("A", `"Due"`, ``)},
		},
		"a suspension in a step": {begun[0], begun[1], begun[2],
			{order(event.OrderSuspended, typed.OrderSuspended{}), as("A", `"InTaskProcess","taskId":"`+task+`"`, `{"TYPE":"Suspended"}`)},
			{order(event.OrderResumed, typed.OrderResumed{}), as("A", `"InTaskProcess","taskId":"`+task+`"`, ``)},
			{ended, as("A", `"Due"`, ``)},
			{order(event.OrderSuspended, typed.OrderSuspended{}), as("A", `"Due"`, `{"TYPE":"Suspended"}`)},
			{order(event.OrderNodeChanged, typed.OrderNodeChanged{NodeID: "B", FromNodeID: "A"}), as("B", `"Due"`, `{"TYPE":"Suspended"}`)},
		},
		"an end at which it stays": {begun[0], begun[1], begun[2], {ended, as("A", `"Due"`, ``)},
			{order(event.OrderSuspended, typed.OrderSuspended{Blacklisted: true}), as("A", `"Blacklisted"`, `{"TYPE":"Suspended"}`)},
			{order(event.OrderNodeChanged, typed.OrderNodeChanged{NodeID: "end", FromNodeID: "A"}), as("end", `"Blacklisted"`, `{"TYPE":"Suspended"}`)},
			{order(event.OrderSuspended, typed.OrderSuspended{}), as("end", `"Due"`, `{"TYPE":"Suspended"}`)},
			{order(event.OrderNodeChanged, typed.OrderNodeChanged{NodeID: "A", FromNodeID: "end"}), as("A", `"Due"`, `{"TYPE":"Suspended"}`)},
			{order(event.OrderSuspended, typed.OrderSuspended{Blacklisted: true}), as("A", `"Blacklisted"`, `{"TYPE":"Suspended"}`)},
			{order(event.OrderResumed, typed.OrderResumed{}), as("A", `"Due"`, ``)},
			{order(event.OrderFinished, typed.OrderFinished{NodeID: "end"}), ``},
		},
		"what is not there": {begun[0], begun[1],
			{order(event.OrderWaiting, typed.OrderWaiting{NodeID: "B", For: typed.ForLock, Name: "db"}), as("B", `"WaitingForResource"`, ``)},
			{order(event.OrderWaiting, typed.OrderWaiting{NodeID: "B", For: typed.ForChain}), as("B", `"WaitingForResource"`, ``)},
			{order(event.OrderNodeChanged, typed.OrderNodeChanged{NodeID: "B", FromNodeID: "B"}), as("B", `"Due"`, ``)},
		},
		"a prompt": {begun[0], begun[1],
			{order(event.OrderPrompted, typed.OrderPrompted{NodeID: "P", Deadline: after(time.Hour)}),
				as("P", `"WaitingForResource"`, `{"TYPE":"Prompt","until":"2026-01-01T01:00:00.000000Z"}`)},
			{order(event.OrderSuspended, typed.OrderSuspended{}),
				as("P", `"WaitingForResource"`, `{"TYPE":"Suspended"},{"TYPE":"Prompt","until":"2026-01-01T01:00:00.000000Z"}`)},
			{order(event.OrderResumed, typed.OrderResumed{}), as("P", `"WaitingForResource"`, `{"TYPE":"Prompt","until":"2026-01-01T01:00:00.000000Z"}`)},
			{order(event.OrderAnswered, typed.OrderAnswered{Answer: "yes"}), as("P", `"Due"`, ``)},
		},
		"waits": {begun[0], begun[1],
			{order(event.OrderWaiting, typed.OrderWaiting{NodeID: "w", For: typed.ForEvent, Name: "Paid"}), as("w", `"WaitingForResource"`, `{"TYPE":"Wait"}`)},
			{order(event.OrderWaiting, typed.OrderWaiting{NodeID: "x", For: typed.ForTime, Until: after(time.Hour)}),
				as("x", `"WaitingForResource"`, `{"TYPE":"Wait","until":"2026-01-01T01:00:00.000000Z"}`)},
			{order(event.OrderNodeChanged, typed.OrderNodeChanged{NodeID: "B", FromNodeID: "x"}), as("B", `"Due"`, ``)},
		},
		"a fork": {begun[0], begun[1],
			{order(event.OrderForked, typed.OrderForked{Children: 3}), as("A", `"WaitingForResource"`, `{"TYPE":"Join"}`)},
			{typed.OrderEvent(event.OrderAdded, "/a/c,1!a", typed.OrderAdded{NodeID: "A/a/1", Version: 1, Parent: "/a/c,1"}), as("A", `"WaitingForResource"`, `{"TYPE":"Join"}`)},
			{order(event.OrderJoined, typed.OrderJoined{Succeeded: 3}), as("A", `"Due"`, ``)},
		},
	}
	for name, rows := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var events []event.Event
			for _, r := range rows {
				events = append(events, r.event)
				want := r.want
				if want != "" {
					want = `{"TYPE":"OrderOverview","path":"/a/c,1",` + want + `}`
				}
				if diff := cmp.Diff(want, shown(lived(events...), "/a/c,1")); diff != "" {
					t.Errorf("after %d events, %s (-want +got):\n%s", len(events), r.event.Type, diff)
				}
			}
		})
	}
}

// as is an order in the version 1 that was started by the second event.
func as(node, state, obstacles string) string {
	return fmt.Sprintf(`"nodeId":%q,"orderProcessingState":{"TYPE":%s},"obstacles":[%s],"startedAt":"2026-01-01T00:00:01.000000Z","version":1,"variables":{}`,
		node, state, obstacles)
}

func unstarted(state, obstacles string) string {
	return strings.Replace(as("A", state, obstacles), `"startedAt":"2026-01-01T00:00:01.000000Z",`, ``, 1)
}

func attempt(id string, of func(event.Key) event.Event) event.Event {
	return of(event.Key{Path: "/job", TaskID: id})
}

// Of finished orders nothing remains but the numbers of their chain.
func TestFinishedOrdersAreForgotten(t *testing.T) {
	t.Parallel()
	state := lived(
		order(event.OrderAdded, typed.OrderAdded{NodeID: "A", Version: 1}),
		order(event.OrderStarted, typed.OrderStarted{}),
		order(event.OrderStepStarted, typed.OrderStepStarted{NodeID: "A", TaskID: "7"}),
		order(event.OrderRemoved, typed.OrderRemoved{}),
	)
	if state.Len() != 1 || state.Get(projection.OrderCounts+"/a/c") == nil {
		t.Errorf("%d keys, want that of the chain's numbers", state.Len())
	}
}

func TestJobChains(t *testing.T) {
	t.Parallel()
	definition := func(kind string, declared ...typed.NodeAction) event.Event {
		return typed.OrderEvent(kind, "JobChain:/a/c", typed.ChainDeclared{Nodes: declared})
	}
	B, C, D := typed.NodeAction{NodeID: "B", Action: "stop"}, typed.NodeAction{NodeID: "C", Action: "stop"}, typed.NodeAction{NodeID: "D", Action: "stop"}
	state := func(s string) event.Event {
		return typed.OrderEvent(event.JobChainStateChanged, "/a/c", typed.JobChainStateChanged{State: s})
	}
	action := func(node, a string) event.Event {
		return typed.OrderEvent(event.JobChainNodeActionChanged, "/a/c", typed.JobChainNodeActionChanged{NodeID: node, Action: a})
	}
	steps := []struct {
		event event.Event
		want  string // what follows the path
	}{
		{definition("FileBasedAdded"), `"fileBasedState":"Added","state":"running","nodes":[]`},
		{definition("FileBasedActivated"), `"fileBasedState":"Activated","state":"running","nodes":[]`},
		{state("stopped"), `"fileBasedState":"Activated","state":"stopped","nodes":[]`},
		{action("B", "stop"), `"fileBasedState":"Activated","state":"stopped","nodes":[{"nodeId":"B","action":"stop"}]`},
		{action("A", "next_state"), `"fileBasedState":"Activated","state":"stopped","nodes":[{"nodeId":"A","action":"next_state"},{"nodeId":"B","action":"stop"}]`},
		{action("B", "process"), `"fileBasedState":"Activated","state":"stopped","nodes":[{"nodeId":"A","action":"next_state"},{"nodeId":"B","action":"process"}]`},
		{definition("FileBasedReplaced"), `"fileBasedState":"Replaced","state":"stopped","nodes":[{"nodeId":"A","action":"next_state"},{"nodeId":"B","action":"process"}]`},
		{state("running"), `"fileBasedState":"Replaced","state":"running","nodes":[{"nodeId":"A","action":"next_state"},{"nodeId":"B","action":"process"}]`},
		{event.Event{Type: "FileBasedRemoved", Key: event.Key{Path: "Job:/a/c"}}, `"fileBasedState":"Replaced","state":"running","nodes":[{"nodeId":"A","action":"next_state"},{"nodeId":"B","action":"process"}]`},
		{definition("FileBasedRemoved"), `"state":"running","nodes":[{"nodeId":"A","action":"next_state"},{"nodeId":"B","action":"process"}]`},
		{definition("FileBasedAdded", B, C), `"fileBasedState":"Added","state":"running","nodes":[{"nodeId":"A","action":"next_state"},{"nodeId":"B","action":"process"},{"nodeId":"C","action":"stop"}],"declared":["C"]`},
		{definition("FileBasedActivated"), `"fileBasedState":"Activated","state":"running","nodes":[{"nodeId":"A","action":"next_state"},{"nodeId":"B","action":"process"},{"nodeId":"C","action":"stop"}],"declared":["C"]`},
		{definition("FileBasedReplaced", D), `"fileBasedState":"Replaced","state":"running","nodes":[{"nodeId":"A","action":"next_state"},{"nodeId":"B","action":"process"},{"nodeId":"D","action":"stop"}],"declared":["D"]`},
		{action("D", "process"), `"fileBasedState":"Replaced","state":"running","nodes":[{"nodeId":"A","action":"next_state"},{"nodeId":"B","action":"process"},{"nodeId":"D","action":"process"}]`},
		{definition("FileBasedReplaced", D), `"fileBasedState":"Replaced","state":"running","nodes":[{"nodeId":"A","action":"next_state"},{"nodeId":"B","action":"process"},{"nodeId":"D","action":"process"}]`},
	}
	var events []event.Event
	for _, step := range steps {
		events = append(events, step.event)
		want := ""
		if step.want != "" {
			want = `{"TYPE":"JobChainOverview","path":"/a/c",` + step.want + `}`
		}
		if diff := cmp.Diff(want, fold(projection.JobChains(), "/a/c", events...)); diff != "" {
			t.Errorf("after %s (-want +got):\n%s", step.event.Type, diff)
		}
	}
}

// A chain that nobody has changed goes with its definition.
func TestAChainIsForgottenWithItsDefinition(t *testing.T) {
	t.Parallel()
	stop := typed.ChainDeclared{Nodes: []typed.NodeAction{{NodeID: "A", Action: "stop"}}}
	if got := fold(projection.JobChains(), "/c", typed.OrderEvent("FileBasedAdded", "JobChain:/c", stop),
		event.Event{Type: "FileBasedRemoved", Key: event.Key{Path: "JobChain:/c"}}); got != "" {
		t.Errorf("it is shown as %s", got)
	}
}
