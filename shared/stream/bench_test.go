package stream_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store/pebble"
	"github.com/millrace/millrace/shared/stream"
)

// BenchmarkAppend measures how many events concurrent callers append to one stream of an embedded store, one event at a time.
func BenchmarkAppend(b *testing.B) {
	for _, callers := range []int{1, 16} {
		b.Run(fmt.Sprint("callers=", callers), func(b *testing.B) {
			s, err := pebble.Open(b.TempDir(), pebble.Options{})
			if err != nil {
				b.Fatal(err)
			}
			j := journal.Open(s, journal.Options{})
			b.Cleanup(func() { _, _ = j.Close(), s.Close() })
			streams := stream.Open(stream.Options{Store: s, Journal: j})
			b.ReportAllocs()
			b.ResetTimer()
			began := time.Now()
			var group sync.WaitGroup
			var left atomic.Int64
			left.Store(int64(b.N))
			for range callers {
				group.Go(func() {
					for n := left.Add(-1); n >= 0; n = left.Add(-1) {
						a := stream.Append{Stream: "s", Producer: owner, Events: []stream.Event{named("n", int(n))}}
						if _, err := streams.Append(b.Context(), a); err != nil {
							b.Error(err)
						}
					}
				})
			}
			group.Wait()
			b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "events/s")
		})
	}
}
