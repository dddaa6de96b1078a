package journal_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store/pebble"
)

func embedded(b *testing.B) *journal.Journal {
	b.Helper()
	s, err := pebble.Open(b.TempDir(), pebble.Options{})
	if err != nil {
		b.Fatal(err)
	}
	j := journal.Open(s, journal.Options{})
	b.Cleanup(func() {
		if err := j.Close(); err != nil {
			b.Error(err)
		}
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	return j
}

// sized returns n events of about 256 bytes.
func sized(n int) []event.Event {
	events := make([]event.Event, n)
	for i := range events {
		events[i] = event.Event{
			Type: "Measured", Key: event.Key{Path: "/bench/1"}, Fields: fmt.Appendf(nil, `"n":%d,"pad":"%0220d"`, i, i),
		}
	}
	return events
}

// BenchmarkAppend appends durably to the embedded store: events of 256 bytes, from several writers at once.
func BenchmarkAppend(b *testing.B) {
	for _, batch := range []int{1, 100} {
		for _, writers := range []int{1, 16, 64} {
			b.Run(fmt.Sprintf("batch=%d/writers=%d", batch, writers), func(b *testing.B) {
				j := embedded(b)
				events := sized(batch)
				var next atomic.Int64
				var group sync.WaitGroup
				b.ReportAllocs()
				b.ResetTimer()
				for range writers {
					group.Go(func() {
						for next.Add(1) <= int64(b.N) {
							if _, err := j.Emit(b.Context(), events, nil); err != nil {
								b.Error(err)
							}
						}
					})
				}
				group.Wait()
				b.ReportMetric(float64(b.N*batch)/b.Elapsed().Seconds(), "events/s")
			})
		}
	}
}

// BenchmarkRead reads a journal of single appends from its beginning.
func BenchmarkRead(b *testing.B) {
	j := embedded(b)
	const slots = 50_000
	var group sync.WaitGroup
	for range 64 {
		group.Go(func() {
			for range slots / 64 {
				if _, err := j.Emit(b.Context(), sized(1), nil); err != nil {
					b.Error(err)
				}
			}
		})
	}
	group.Wait()
	b.ReportAllocs()
	b.ResetTimer()
	read := 0
	for read < b.N {
		var after event.ID
		for {
			a, err := j.ReadAfter(b.Context(), journal.Request{After: after, Limit: 1000})
			if err != nil {
				b.Fatal(err)
			}
			if len(a.Events) == 0 {
				break
			}
			read += len(a.Events)
			after = a.LastEventID
		}
	}
	b.ReportMetric(float64(read)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(read), "ns/event")
}

// BenchmarkFollow measures the time from the beginning of an append to its arrival at a waiting follower, 500 times a second.
func BenchmarkFollow(b *testing.B) {
	j := embedded(b)
	arrived := make(chan time.Time, 1)
	go func() {
		for a, err := range j.Follow(b.Context(), journal.Request{}, time.Hour) {
			if err != nil {
				return
			}
			for range a.Events {
				arrived <- time.Now()
			}
		}
	}()
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	times := make([]time.Duration, 0, b.N)
	for range b.N {
		<-ticker.C
		began := time.Now()
		if _, err := j.Emit(b.Context(), sized(1), nil); err != nil {
			b.Fatal(err)
		}
		times = append(times, (<-arrived).Sub(began))
	}
	report(b, times)
}

func report(b *testing.B, times []time.Duration) {
	b.Helper()
	slices.Sort(times)
	for _, share := range []int{50, 99} {
		at := times[(len(times)-1)*share/100]
		b.ReportMetric(float64(at.Microseconds()), fmt.Sprintf("p%d-µs", share))
	}
}

// BenchmarkForeign reads past events of 1,000 folders for a follower of one of them, in slots of a step's events.
func BenchmarkForeign(b *testing.B) {
	j := withFold(b, named())
	const slots, each = 7000, 7 // as many as a process keeps in memory
	events := folders(1000, slots*each/1000)
	for some := range slices.Chunk(events, each) {
		if _, err := j.Emit(b.Context(), some, nil); err != nil {
			b.Fatal(err)
		}
	}
	paths, err := event.ParsePath("/f0500/")
	if err != nil {
		b.Fatal(err)
	}
	filter := event.Filter{Types: event.Everything(), Family: event.OrderEvent, Paths: paths}
	b.ReportAllocs()
	found := 0
	for b.Loop() {
		a, err := j.ReadAfter(b.Context(), journal.Request{Match: filter.Match})
		if err != nil {
			b.Fatal(err)
		}
		found = len(a.Events)
	}
	if found != slots*each/1000 {
		b.Errorf("%d events, want %d", found, slots*each/1000)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(events)), "ns/event")
}
