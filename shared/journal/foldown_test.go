package journal_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
)

// slotReads counts the queries for slots.
type slotReads struct {
	store.Store
	queries atomic.Int32
}

func (s *slotReads) Query(ctx context.Context, r store.Range) (store.Page, error) {
	if strings.HasPrefix(r.Partition, "J#") {
		s.queries.Add(1)
	}
	return s.Store.Query(ctx, r)
}

// A process that has the store to itself folds what it has written without reading it back, once it has read what was there before,
// though nobody follows the journal.
func TestAProcessAloneFoldsWhatItHasWrittenWithoutReadingIt(t *testing.T) {
	t.Parallel()
	count := journal.Fold{Name: "count", Apply: func(s *journal.State, e *event.Event) { s.Put(e.Key.Path, e.Fields) }}
	s := &slotReads{Store: memory.New(memory.Options{})}
	j := open(t, s, journal.Options{Folds: []journal.Fold{count}})
	for round := range 3 {
		var last event.ID
		for range 20 {
			r, err := j.Emit(t.Context(), []event.Event{custom(round)}, nil)
			if err != nil {
				t.Fatal(err)
			}
			last = r.EventIDs()[r.Count-1]
		}
		before := s.queries.Load()
		at, err := j.Snapshot(t.Context(), "count", func(string, []byte) {})
		if err != nil || at != last {
			t.Fatalf("round %d: the snapshot is of %d, %v, want %d", round, at, err, last)
		}
		if n := s.queries.Load() - before; round > 0 && n != 0 {
			t.Errorf("round %d: %d queries for slots, want none", round, n)
		}
	}
}
