package projection_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/pebble"
	"github.com/millrace/millrace/shared/task"
)

// BenchmarkPast asks what was at random ids, in a journal of the embedded store in which a million tasks of some jobs were added, a
// thousand with each append, and then a hundred thousand of them run, each with an append for its start and one for its end. A
// sweep runs after every 20,000 events. "warm" is the process that has done all that, "cold" one that was just started. It reports
// the time until the first object is shown, until the last of a million is, and, for comparison, that of a snapshot of now.
func BenchmarkPast(b *testing.B) {
	for _, jobs := range []int{10, 10_000} {
		b.Run(fmt.Sprintf("jobs=%d", jobs), func(b *testing.B) {
			disk, err := pebble.Open(b.TempDir(), pebble.Options{})
			if err != nil {
				b.Fatal(err)
			}
			o := journal.Options{Folds: projection.Folds()}
			warm := journal.Open(disk, o)
			ids := million(b, warm, jobs)
			b.Run("warm", func(b *testing.B) { ask(b, disk, func() *journal.Journal { return warm }, ids) })
			b.Run("cold", func(b *testing.B) { ask(b, disk, func() *journal.Journal { return journal.Open(disk, o) }, ids) })
			_ = warm.Close()
			_ = disk.Close()
		})
	}
}

// million fills a journal and returns ids of its events.
func million(b *testing.B, j *journal.Journal, jobs int) (ids []event.ID) {
	b.Helper()
	const tasks, atOnce, ran = 1_000_000, 1000, 100_000
	luck := rand.New(rand.NewPCG(1, 2))
	events, since := make([]event.Event, 0, atOnce), 0
	emit := func() {
		r, err := j.Emit(b.Context(), events, nil)
		if err != nil {
			b.Fatal(err)
		}
		ids = append(ids, r.FirstID)
		if since += len(events); since >= 20_000 {
			since = 0
			if _, err := j.Sweep(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
		events = events[:0]
	}
	keys := make([]event.Key, tasks)
	for i := range keys {
		n := i % jobs
		if jobs > 10 {
			n = luck.IntN(jobs)
		}
		id := task.NewID("S_C_", "/sources/S/C", 1767225600000000+int64(i)*1700, uint32(i)*2654435761)
		keys[i] = event.Key{Path: fmt.Sprintf("/sources/S%d/C", n), TaskID: string(id)}
		events = append(events, event.Event{Type: "TaskAdded", Key: keys[i], Fields: []byte(`"queue":"sync-tasks","priority":7`)})
		if len(events) == atOnce {
			emit()
		}
	}
	for _, key := range keys[:ran] {
		events = append(events, event.Event{Type: "TaskStarted", Key: key, Fields: []byte(`"attempt":1,"instance":"worker/0123456789abcdef"`)})
		emit()
		events = append(events, event.Event{Type: "TaskEnded", Key: key, Fields: []byte(`"returnCode":0,"outcome":"ok"`)},
			event.Event{Type: "TaskClosed", Key: key, Fields: []byte(`"state":"succeeded"`)})
		emit()
	}
	return ids
}

func ask(b *testing.B, s store.Store, open func() *journal.Journal, ids []event.ID) {
	b.Helper()
	seq, err := s.Sequence(b.Context(), store.Key{Table: store.Journal, Partition: "H#main", Sort: "0"}, false)
	if err != nil {
		b.Fatal(err)
	}
	kept := slices.DeleteFunc(slices.Clone(ids), func(id event.ID) bool { return id < event.ID(seq.FloorID) })
	luck := rand.New(rand.NewPCG(3, 4))
	var first, whole, now []time.Duration
	for b.Loop() {
		j := open()
		if _, err := j.Snapshot(b.Context(), projection.WorkName, func(string, []byte) {}); err != nil { // until it has begun
			b.Fatal(err)
		}
		began := time.Now()
		if _, err := j.Snapshot(b.Context(), projection.TasksName, func(string, []byte) {}); err != nil {
			b.Fatal(err)
		}
		now = append(now, time.Since(began))
		began = time.Now()
		ctx, stop := context.WithCancel(b.Context())
		seen := 0
		err := j.SnapshotAt(ctx, projection.TasksName, kept[luck.IntN(len(kept))], journal.Part{}, func(string, []byte) {
			if seen++; seen == 1 {
				first = append(first, time.Since(began))
			}
		})
		stop()
		if err != nil {
			b.Fatal(err)
		}
		whole = append(whole, time.Since(began))
	}
	for name, times := range map[string][]time.Duration{"first": first, "whole": whole, "now": now} {
		slices.Sort(times)
		b.ReportMetric(float64(times[len(times)/2].Milliseconds()), name+"-p50-ms")
		b.ReportMetric(float64(times[len(times)-1].Milliseconds()), name+"-max-ms")
	}
}
