package projection_test

import (
	"fmt"
	"testing"

	"github.com/millrace/millrace/shared/event"
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
