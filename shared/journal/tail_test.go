package journal_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
)

// swallowing accepts writes and stores none, so that all memory in use is the journal's.
type swallowing struct{ store.Store }

func (swallowing) Write(context.Context, store.Write) error { return nil }

// A process that writes behind a missing slot of another process keeps a bounded number of bytes for readers that may come.
// Not parallel: it measures the heap.
func TestWhatIsWrittenBehindAMissingSlotIsKeptInBounds(t *testing.T) {
	s := memory.New(memory.Options{})
	j := open(t, swallowing{s}, journal.Options{})
	if _, err := j.ReadAfter(t.Context(), journal.Request{Timeout: time.Millisecond}); err != nil { // now the end is known
		t.Fatal(err)
	}
	if _, err := s.Reserve(t.Context(), store.Key{Table: store.Journal, Partition: "H#main", Sort: "0"}, 1, 1); err != nil {
		t.Fatal(err)
	}
	before := heap()
	const events, size = 1000, 100 << 10
	for range events {
		fields := []byte(`"text":"` + strings.Repeat("x", size) + `"`)
		if _, err := j.Emit(t.Context(), []event.Event{{Type: "Big", Fields: fields}}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if grown := int64(heap()) - int64(before); grown > 16<<20 {
		t.Errorf("%d MiB are kept of %d MiB written, want 8 at most", grown>>20, events*size>>20)
	}
	runtime.KeepAlive(j)
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Followers that are far behind take memory for what they are given, not for what there is, which matters when a hundred begin
// at once. Not parallel: it measures what is allocated.
func TestAFollowerFarBehindTakesMemoryByWhatItIsGiven(t *testing.T) {
	s := memory.New(memory.Options{})
	writer := open(t, s, journal.Options{})
	const slots, perSlot = 300, 40
	for range slots {
		var events []event.Event
		for range perSlot {
			events = append(events, event.Event{Type: "E", Fields: []byte(`"text":"` + strings.Repeat("x", 1000) + `"`)})
		}
		if _, err := writer.Emit(t.Context(), events, nil); err != nil {
			t.Fatal(err)
		}
	}
	follower := open(t, s, journal.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen, most := 0, uint64(0)
	before := allocated()
	for a, err := range follower.Follow(ctx, journal.Request{MaxBytes: 64 << 10}, time.Hour) {
		if err != nil {
			t.Fatal(err)
		}
		now := allocated()
		most, before = max(most, now-before), now
		if seen += len(a.Events); seen == slots*perSlot {
			cancel()
			break
		}
	}
	if most > 1<<20 {
		t.Errorf("an answer of 64 KiB takes up to %d KiB to make", most>>10)
	}
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}
