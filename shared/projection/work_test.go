package projection_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
)

// Both ids were created at 1767225600000000 (2026-01-01T00:00:00Z) plus 5 µs.
const first, second = "019b76da-a800-7005-8000-000000000000", "S_C_019b76da-a800-7005-8000-000000000001"

func TestWork(t *testing.T) {
	t.Parallel()
	const zero = event.ID(1767225600000000)
	events := []struct {
		at           event.ID
		kind, id, of string
	}{
		{5, "TaskAdded", first, `"queue":"q","priority":0`},
		{6, "TaskAdded", second, `"queue":"q","priority":0,"notBefore":"2026-01-01T00:00:01.000000Z"`},
		{105, "TaskStarted", first, `"attempt":1`}, // waited 100
		{110, "TaskEnded", first, `"returnCode":0,"outcome":"failed","retryAt":"2026-01-01T00:00:00.000210Z"`},
		{260, "TaskStarted", first, `"attempt":2`}, // waited 50
		{263, "TaskEnded", first, `"returnCode":0,"outcome":"again","retryAt":"1970-01-01T00:00:00.000001Z"`},
		{273, "TaskStarted", first, `"attempt":2`}, // waited 10
		{313, "TaskEnded", first, `"returnCode":0,"outcome":"ok"`},
		{314, "TaskClosed", first, `"state":"succeeded"`}, // took 40
		{1_000_020, "TaskStarted", second, `"attempt":1`}, // waited 20
	}
	var state journal.State
	apply := projection.Work().Apply
	for _, e := range events {
		apply(&state, &event.Event{ID: zero + e.at, Type: e.kind, Key: event.Key{Path: "/j", TaskID: e.id}, Fields: []byte(e.of)})
	}
	got, ok := projection.ReadDone("/j", state.Get("/j"))
	want := projection.Done{Active: 1, Finished: 1, Failed: 1, Starts: 4, Waited: 180, Ends: 1, Processed: 40}
	if diff := cmp.Diff(want, got); diff != "" || !ok {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, e := range []struct{ kind, of string }{{"TaskEnded", `"returnCode":1,"outcome":"cancel"`}, {"TaskClosed", `"state":"rejected"`}} {
		apply(&state, &event.Event{ID: zero + 2_000_000, Type: e.kind, Key: event.Key{Path: "/j", TaskID: second}, Fields: []byte(e.of)})
	}
	want.Active, want.Cancelled = 0, 1
	if got, _ := projection.ReadDone("/j", state.Get("/j")); cmp.Diff(want, got) != "" {
		t.Errorf("(-want +got):\n%s", cmp.Diff(want, got))
	}
	if state.Len() != 1 {
		t.Errorf("%d keys, want the job's alone: finished tasks are forgotten", state.Len())
	}
}
