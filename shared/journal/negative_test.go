package journal_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store/memory"
)

// A negative option is a mistake, and counts as its default: above all, it evicts nothing.
func TestANegativeOptionMeansItsDefault(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]journal.Options{
		"events": {Retention: journal.Retention{Events: -1}},
		"age":    {Retention: journal.Retention{Age: -time.Hour}},
		"chunk":  {Chunk: -1},
		"timing": {Timing: journal.Timing{
			Grace: -time.Second, Age: -time.Second, RemoveAfter: -time.Second, Poll: -time.Second, Call: -time.Second, Append: -time.Second,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o.Folds = []journal.Fold{counter}
				j := open(t, memory.New(memory.Options{}), o)
				const events = 20
				for n := range events {
					if _, err := j.Emit(t.Context(), []event.Event{custom(n)}, nil); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Minute)
					if _, err := j.Sweep(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				a, err := j.ReadAfter(t.Context(), journal.Request{})
				if err != nil || a.Torn || len(a.Events) != events {
					t.Errorf("ReadAfter = torn %t, %d events, %v, want %d", a.Torn, len(a.Events), err, events)
				}
			})
		})
	}
}
