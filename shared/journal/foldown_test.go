package journal_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

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

// A process folds what it has written without reading it back, once it has read what was there before, though nobody follows the journal.
func TestAProcessFoldsWhatItHasWrittenWithoutReadingIt(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]memory.Options{"alone": {}, "of many": {Shared: true}, "taking tickets itself": {Shared: true, Advances: true}} {
		t.Run(name, func(t *testing.T) { t.Parallel(); foldsItsOwn(t, o) })
	}
}

func foldsItsOwn(t *testing.T, o memory.Options) {
	count := journal.Fold{Name: "count", Apply: func(s *journal.State, e *event.Event) { s.Put(e.Key.Path, e.Fields) }}
	s := &slotReads{Store: memory.New(o)}
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

// Where another process writes too, a fold reads what both have written by pages, as one that has written nothing does, and waits for nothing.
func TestAFoldReadsWhatOthersHaveWritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		count := journal.Fold{Name: "count", Apply: func(s *journal.State, e *event.Event) { s.Put(string(e.Fields), e.Fields) }}
		s := &slotReads{Store: memory.New(memory.Options{Shared: true, Advances: true})}
		reads, writes := journal.Options{Folds: []journal.Fold{count}}, journal.Options{}
		mine, other, reader := open(t, s, reads), open(t, s, writes), open(t, s, reads)
		for round := range 3 {
			for n := range 20 {
				for _, j := range []*journal.Journal{mine, other} {
					if _, err := j.Emit(t.Context(), []event.Event{custom(1000*round + n)}, nil); err != nil {
						t.Fatal(err)
					}
				}
			}
			began := time.Now()
			folded := func(j *journal.Journal) (queries int32, keys int) {
				before := s.queries.Load()
				if _, err := j.Snapshot(t.Context(), "count", func(string, []byte) { keys++ }); err != nil {
					t.Fatal(err)
				}
				return s.queries.Load() - before, keys
			}
			most, _ := folded(reader)
			if queries, keys := folded(mine); queries > most || keys != 20*(round+1) || time.Since(began) > 0 {
				t.Errorf("round %d: %d queries for slots, want %d; %d keys, %v", round, queries, most, keys, time.Since(began))
			}
		}
	})
}

// A process that has folded, and has not written since, finds the end of what others have written by a search.
func TestAReaderAfterAFoldFindsTheEndOfWhatOthersHaveWritten(t *testing.T) {
	t.Parallel()
	count := journal.Fold{Name: "count", Apply: func(s *journal.State, e *event.Event) { s.Put(e.Key.Path, e.Fields) }}
	s := &slotReads{Store: memory.New(memory.Options{Shared: true})}
	here, there := open(t, s, journal.Options{Folds: []journal.Fold{count}}), open(t, s, journal.Options{})
	var last event.ID
	for n := range 5000 {
		r, err := there.Emit(t.Context(), []event.Event{custom(n)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if last = r.FirstID; n == 0 {
			if _, err := here.Snapshot(t.Context(), "count", func(string, []byte) {}); err != nil {
				t.Fatal(err)
			}
		}
	}
	before := s.queries.Load()
	got, err := here.ReadAfter(t.Context(), journal.Request{After: last - 1})
	if queries := s.queries.Load() - before; err != nil || len(got.Events) != 1 || queries > 2 {
		t.Errorf("%d events, %v, by %d queries for slots, want 2 at most", len(got.Events), err, queries)
	}
}
