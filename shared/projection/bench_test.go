package projection_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/task"
)

// BenchmarkTask folds the events of one task's life, with a delay and a failed attempt, in all projections.
func BenchmarkTask(b *testing.B) {
	const created = 1767225600000000
	life := []event.Event{
		{Type: "TaskAdded", Fields: []byte(`"queue":"sync-tasks","priority":7`)},
		{Type: "TaskAdded", Fields: []byte(`"queue":"sync-tasks","priority":7,"notBefore":"2026-01-01T00:00:01.000000Z"`)},
		{Type: "TaskStarted", Fields: []byte(`"attempt":1,"instance":"worker/0123456789abcdef"`)},
		{Type: "TaskEnded", Fields: []byte(`"returnCode":3,"outcome":"failed","retryAt":"2026-01-01T00:00:09.000000Z"`)},
		{Type: "TaskStarted", Fields: []byte(`"attempt":2,"instance":"worker/0123456789abcdef"`)},
		{Type: "TaskEnded", Fields: []byte(`"returnCode":0,"outcome":"ok"`)},
		{Type: "TaskClosed", Fields: []byte(`"state":"succeeded"`)},
	}
	folds := projection.Folds()
	states := make([]journal.State, len(folds))
	keys := make([]event.Key, 64)
	for i := range keys {
		id := task.NewID("S_C_", "/sources/S/C", created+int64(i), uint32(i))
		keys[i] = event.Key{Path: fmt.Sprintf("/sources/S%d/C", i%4), TaskID: string(id)}
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		for n := range life {
			e := life[n]
			e.ID, e.Key = event.ID(created+1000*i+n), keys[i%len(keys)]
			for f := range folds {
				folds[f].Apply(&states[f], &e)
			}
		}
	}
}

// walked returns the state of so many orders in folders of 100, each at its second node, about to run.
func walked(orders int) *journal.State {
	state, apply := &journal.State{}, projection.Orders().Apply
	for i := range orders {
		path := fmt.Sprintf("/f%04d/chain,%d", i%max(1, orders/100), 1_000_000+i)
		task := string(task.NewID("", path, 1767225600000000+int64(i)*1700, uint32(i)*2654435761))
		for n, e := range []event.Event{
			typed.OrderEvent(event.OrderAdded, path, typed.OrderAdded{NodeID: "100", Version: 1, Variables: []byte(`{"parcel":"4711","weight":3}`)}),
			typed.OrderEvent(event.OrderStarted, path, typed.OrderStarted{}),
			typed.OrderEvent(event.OrderStepStarted, path, typed.OrderStepStarted{NodeID: "100", TaskID: task}),
			typed.OrderEvent(event.OrderStepEnded, path, typed.OrderStepEnded{Transition: typed.NodeTransition{Type: typed.Success}}),
			typed.OrderEvent(event.OrderNodeChanged, path, typed.OrderNodeChanged{NodeID: "200", FromNodeID: "100"}),
		} {
			e.ID = event.ID(1767225600000000 + 10*i + n)
			apply(state, &e)
		}
	}
	return state
}

// BenchmarkOrder folds the five events of an order's step.
func BenchmarkOrder(b *testing.B) {
	b.ReportAllocs()
	walked(b.N)
}

// BenchmarkShowOrder renders the overviews of orders.
func BenchmarkShowOrder(b *testing.B) {
	state, show := walked(1000), projection.Orders().Show
	b.ReportAllocs()
	shown := make([]byte, 0, 1000)
	for i := 0; i < b.N; {
		for key, value := range state.All() {
			shown = show(shown[:0], key, value)
			i++
		}
	}
}

// BenchmarkObject folds events of one custom key in all projections.
func BenchmarkObject(b *testing.B) {
	e := event.Event{Type: "BenchEvent", Key: event.Key{Path: "/bench/j"}}
	e.Fields = []byte(`"i":17,"t":1767225600000000,"pad":"` + strings.Repeat("0123456789", 20) + `"`)
	folds := projection.Folds()
	states := make([]journal.State, len(folds))
	b.ReportAllocs()
	for b.Loop() {
		e.ID++
		for f := range folds {
			folds[f].Apply(&states[f], &e)
		}
	}
}
