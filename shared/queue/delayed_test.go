package queue_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// TestCountsKeepLittleOfEachDelayedTask: the tasks that wait for a time are counted right, in any dialect, and a count takes few
// bytes for each.
func TestCountsKeepLittleOfEachDelayedTask(t *testing.T) {
	b := setup(t)
	const tasks, perEvent = 20_000, 2000
	for from := 0; from < tasks; from += perEvent {
		events := make([]event.Event, perEvent)
		for i := range events {
			n := from + i
			id := fmt.Sprintf("%08x-0000-7000-8000-%012x", n, n*7919)
			if n%2 == 0 {
				id = fmt.Sprintf("s_c%d_%s", n%3, id)
			}
			fields := `"notBefore":"2026-01-01T01:00:00.000000Z"`
			if n%10 == 0 {
				fields = `"priority":1`
			}
			events[i] = event.Event{Type: "TaskAdded", Key: event.Key{Path: fmt.Sprint("/job", n%4), TaskID: id}, Fields: []byte(fields)}
		}
		if _, err := b.journal.Write(t.Context(), func(context.Context, *store.Conflict) (journal.Change, error) {
			return journal.Change{Events: events}, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	b.clock.advance(time.Minute)
	counts, err := b.Counts(t.Context(), "/job")
	if err != nil {
		t.Fatal(err)
	}
	var waiting, ready int64
	for _, states := range counts {
		waiting, ready = waiting+states[task.Waiting], ready+states[task.Ready]
	}
	if waiting != tasks*9/10 || ready != tasks/10 {
		t.Errorf("%d wait and %d are ready, want %d and %d", waiting, ready, tasks*9/10, tasks/10)
	}
	grown := func(do func()) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		do()
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	for name, count := range map[string]func() error{
		"Counts":        func() error { _, err := b.Counts(t.Context(), "/job"); return err },
		"OldestWaiting": func() error { _, err := b.OldestWaiting(t.Context(), "/job"); return err },
	} {
		var err error
		kept := grown(func() { err = count() }) / tasks
		if err != nil || kept > 240 { // about 100 of them since it passes over two projections, the rest as a list of 24 bytes each grows
			t.Errorf("%s allocates %d bytes for each task, %v, want at most 240", name, kept, err)
		}
	}
}
