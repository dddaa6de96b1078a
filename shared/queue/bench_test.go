package queue_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store/pebble"
	"github.com/millrace/millrace/shared/task"
)

// openPebble returns an engine on an embedded store that runs at most limit tasks at once; 0: no limit.
func openPebble(b testing.TB, limit int) *queue.Queue {
	b.Helper()
	jobs := set()
	jobs.Queues = append(jobs.Queues, definition.Queue{Name: definition.MainQueue, MaxParallel: limit})
	s, err := pebble.Open(b.TempDir(), pebble.Options{})
	if err != nil {
		b.Fatal(err)
	}
	j := journal.Open(s, journal.Options{Folds: projection.Folds()})
	b.Cleanup(func() { j.Close(); s.Close() })
	return queue.Open(queue.Options{Store: s, Journal: j, Definitions: fixed{jobs}})
}

var payload = []byte(`"` + fmt.Sprintf("%0254d", 1) + `"`)

func fill(b *testing.B, q *queue.Queue, n, producers int) {
	var group sync.WaitGroup
	var left atomic.Int64
	left.Store(int64(n))
	for range producers {
		group.Go(func() {
			for left.Add(-1) >= 0 {
				if _, err := q.Enqueue(b.Context(), nil, queue.New{Dialect: task.Job, Job: "/plain", Payload: payload}); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
}

func drain(b *testing.B, q *queue.Queue, n, workers, batch int) {
	var group sync.WaitGroup
	var done atomic.Int64
	for w := range workers {
		group.Go(func() {
			for done.Load() < int64(n) {
				leases, err := q.Claim(b.Context(), queue.Claimer{Instance: fmt.Sprint(w)}, batch)
				if err != nil {
					b.Error(err)
					return
				}
				for len(leases) > 0 {
					_, more, err := q.CompleteAndClaim(b.Context(), leases[0].Token, queue.Result{Outcome: queue.OK}, queue.Claimer{Instance: fmt.Sprint(w)}, batch)
					if err != nil {
						b.Error(err)
						return
					}
					leases = append(leases[1:], more...)
					done.Add(1)
				}
			}
		})
	}
	group.Wait()
}

func BenchmarkEnqueue(b *testing.B) {
	q := openPebble(b, 0)
	b.ResetTimer()
	began := time.Now()
	fill(b, q, b.N, 16)
	b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "tasks/s")
}

func BenchmarkDrain(b *testing.B) {
	for _, limit := range []int{0, 15, 1000} {
		b.Run(fmt.Sprint("limit=", limit), func(b *testing.B) {
			q := openPebble(b, limit)
			fill(b, q, b.N, 64)
			b.ResetTimer()
			began := time.Now()
			drain(b, q, b.N, 16, 1)
			b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "tasks/s")
		})
	}
}

func BenchmarkBoth(b *testing.B) {
	q := openPebble(b, 0)
	b.ResetTimer()
	began := time.Now()
	var group sync.WaitGroup
	group.Go(func() { fill(b, q, b.N, 16) })
	drain(b, q, b.N, 16, 1)
	group.Wait()
	b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "tasks/s")
}

// BenchmarkAgain measures how fast tasks become ready again that are put off by a millisecond at each start, however often that was.
func BenchmarkAgain(b *testing.B) {
	for _, tasks := range []int{4, 256} {
		b.Run(fmt.Sprint("tasks=", tasks), func(b *testing.B) {
			q := openPebble(b, 0)
			ctx, stop := context.WithCancel(b.Context())
			var upkeep sync.WaitGroup
			defer upkeep.Wait()
			defer stop()
			upkeep.Go(func() { q.Run(ctx) })
			for range tasks {
				if _, err := q.Enqueue(ctx, nil, queue.New{Job: "/topics/a", Queue: "main"}); err != nil {
					b.Fatal(err)
				}
			}
			b.ResetTimer()
			began := time.Now()
			putOff(b, q, b.N, 16)
			b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "tasks/s")
		})
	}
}

func putOff(b *testing.B, q *queue.Queue, n, workers int) {
	var group sync.WaitGroup
	var done atomic.Int64
	for range workers {
		group.Go(func() {
			for done.Load() < int64(n) {
				leases := claimFor(b.Context(), q, 100*time.Millisecond)
				for i := range leases {
					done.Add(1)
					again := queue.Result{Outcome: queue.Again, RetryDelay: time.Millisecond}
					if _, err := q.Complete(b.Context(), leases[i].Token, again); err != nil {
						b.Error(err)
					}
				}
			}
		})
	}
	group.Wait()
}
