package projection_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/task"
)

// Waiting tasks are kept in memory for snapshots: a million tasks in some tens of bytes each, with almost no pointers. A
// serving process keeps no more of a task than this.
func TestAWaitingTaskIsSmall(t *testing.T) { // not parallel: it measures the heap
	const tasks, bound = 1_000_000, 64
	states := make([]journal.State, len(projection.Folds()))
	before := heap()
	for i := range tasks {
		id := task.NewID("S_C_", "/sources/S/C", 1767225600000000+int64(i)*1700, uint32(i)*2654435761)
		added := event.Event{
			ID: event.ID(i + 1), Type: "TaskAdded", Fields: []byte(`"queue":"sync","priority":7`),
			Key: event.Key{Path: fmt.Sprintf("/sources/S%d/C", i%10), TaskID: string(id)},
		}
		for n, fold := range projection.Folds() {
			fold.Apply(&states[n], &added)
		}
	}
	each := float64(heap().HeapAlloc-before.HeapAlloc) / tasks
	objects := float64(heap().HeapObjects-before.HeapObjects) / tasks
	t.Logf("%.1f bytes and %.3f objects of the heap for each task", each, objects)
	if each > bound || objects > 0.2 {
		t.Errorf("%.1f bytes and %.3f objects of the heap for each task, want at most %d and 0.2", each, objects, bound)
	}
	runtime.KeepAlive(states)
}

// An order is kept in a hundred bytes or so, and its variables, with almost no pointers.
func TestAnOrderIsSmall(t *testing.T) { // not parallel: it measures the heap
	const orders, bound = 100_000, 128
	before := heap()
	state := walked(orders)
	each := float64(heap().HeapAlloc-before.HeapAlloc) / orders
	objects := float64(heap().HeapObjects-before.HeapObjects) / orders
	t.Logf("%.1f bytes and %.3f objects of the heap for each order", each, objects)
	if each > bound || objects > 0.5 {
		t.Errorf("%.1f bytes and %.3f objects of the heap for each order, want at most %d and 0.5", each, objects, bound)
	}
	runtime.KeepAlive(state)
}

func heap() (m runtime.MemStats) {
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m
}
