package journal_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/faulty"
	"github.com/millrace/millrace/shared/store/memory"
)

// before returns nothing to queries, as if all slots were written just after each query.
type before struct{ store.Store }

func (before) Query(context.Context, store.Range) (store.Page, error) { return store.Page{}, nil }

// A reader that loses the race for a slot to its writer delivers the event, even if the store does not say what it found.
func TestAReaderThatIsNotToldWhatWonReadsIt(t *testing.T) {
	t.Parallel()
	for _, untold := range []bool{false, true} {
		t.Run(fmt.Sprintf("untold %v", untold), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				service := faulty.NewService(memory.New(memory.Options{}), faulty.Faults{Untold: untold}, nil)
				writer := open(t, service.Process("writer"), journal.Options{})
				reader := open(t, before{service.Process("reader")}, journal.Options{})
				receipt, err := writer.Emit(t.Context(), []event.Event{custom(1)}, nil)
				if err != nil {
					t.Fatal(err)
				}
				a, err := reader.ReadAfter(t.Context(), journal.Request{})
				if err != nil || len(a.Events) != 1 || a.Events[0].ID != receipt.FirstID {
					t.Errorf("ReadAfter = %+v, %v, want the event %d", a, err, receipt.FirstID)
				}
			})
		})
	}
}

// A write whose response was lost finds its own items when it is sent again, which such a store reports as a conflict.
func TestAnAppendThatMeetsItselfIsAcknowledgedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		service := faulty.NewService(memory.New(memory.Options{}),
			faulty.Faults{Seed: 3, Untold: true, LoseAnswer: 0.3, Timeout: 50 * time.Millisecond}, nil)
		j := open(t, service.Process("writer"), journal.Options{Folds: []journal.Fold{counter}})
		const events = 100
		for n := range events {
			if _, err := j.Emit(t.Context(), []event.Event{custom(0)}, nil); err != nil {
				t.Fatalf("Emit of event %d = %v", n, err)
			}
		}
		reader := open(t, service.Process("reader"), journal.Options{})
		for range 200 {
			if a, err := reader.ReadAfter(t.Context(), journal.Request{}); err == nil {
				if len(a.Events) != events {
					t.Errorf("%d events on the journal, want %d", len(a.Events), events)
				}
				return
			}
		}
		t.Error("the journal cannot be read")
	})
}

// A used idempotency key is recognized, whether the store returns the item or it has to be read.
func TestAnIdempotencyKeyIsFoundUsedWhereConflictsDoNotTell(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		service := faulty.NewService(memory.New(memory.Options{}), faulty.Faults{Untold: true}, nil)
		j := open(t, service.Process("writer"), journal.Options{})
		once := &journal.Idempotency{Scope: "s", Key: "k"}
		first, err := j.Emit(t.Context(), []event.Event{custom(1)}, once)
		if err != nil {
			t.Fatal(err)
		}
		second, err := j.Emit(t.Context(), []event.Event{custom(1)}, once)
		if err != nil || !second.Replayed || second.FirstID != first.FirstID {
			t.Errorf("second Emit = %+v, %v, want the first's %+v", second, err, first)
		}
	})
}
