package journal_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store/memory"
)

// Events that match may lie behind any number of slots without any, in the store or in memory.
func TestAReadPassesAnyNumberOfSlots(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := memory.New(memory.Options{})
		j := open(t, m, journal.Options{})
		const slots = 40_000
		emit := func(kind string) event.ID {
			r, err := j.Emit(t.Context(), []event.Event{{Type: kind, Key: event.Key{Path: "/a"}}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			return r.FirstID
		}
		for range slots {
			emit("Other")
		}
		want := emit("Wanted")
		for _, most := range []int{0, 64 << 10} {
			for _, reader := range []*journal.Journal{j, open(t, m, journal.Options{})} {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				a, err := reader.ReadAfter(ctx, journal.Request{
					MaxBytes: most, Match: func(e *event.Event) bool { return e.Type == "Wanted" },
				})
				cancel()
				if err != nil || len(a.Events) != 1 || a.Events[0].ID != want {
					t.Errorf("bounded to %d bytes: found %v, %v", most, a.Events, err)
				}
			}
		}
	})
}
