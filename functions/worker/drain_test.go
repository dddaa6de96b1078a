package main

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/millrace/millrace/shared/bell"
	"github.com/millrace/millrace/shared/bell/faulty"
	"github.com/millrace/millrace/shared/bell/local"
	"github.com/millrace/millrace/shared/bell/sqs"
	"github.com/millrace/millrace/shared/config"
	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/host"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/service"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/store/meter"
	"github.com/millrace/millrace/shared/task"
	"github.com/millrace/millrace/shared/worker"
)

// What Lambda is told in template.yaml.
const (
	timeout     = 900 * time.Second
	batchSize   = 10
	concurrency = 16
)

// deployment is the function as Lambda runs it, in processes that share a store and a queue of rings.
type deployment struct {
	t     *testing.T
	store *meter.Meter
	bell  bell.Line
	luck  faulty.Faults // of the bell

	ran      sync.Map // how often, by payload
	count    atomic.Int64
	invoked  atomic.Int64
	messages atomic.Int64
}

// shared is a store that other processes may reach too.
type shared struct{ store.Store }

// Exclusive answers false.
func (shared) Exclusive() bool { return false }

func deploy(t *testing.T, luck faulty.Faults) *deployment {
	t.Helper()
	d := &deployment{t: t, store: meter.New(shared{memory.New(memory.Options{})})}
	d.bell = faulty.New(local.New(), 1, luck, nil)
	set := &definition.Set{Jobs: []definition.Job{{Path: "/work", Target: definition.Target{Go: "f"}}}}
	s := d.process()
	defer func() { _ = s.Close() }()
	if _, err := s.Definitions.Apply(t.Context(), set, definition.FromFile); err != nil {
		t.Fatal(err)
	}
	return d
}

// kept is a bell that is not closed with the process that rings it.
type kept struct{ bell.Line }

// Close does nothing.
func (kept) Close() error { return nil }

// process starts one.
func (d *deployment) process() *service.Tasks {
	place := host.PlaceOf(func(name string) string { return map[string]string{"AWS_LAMBDA_RUNTIME_API": "test"}[name] })
	place.Metrics = nil
	return service.NewTasks(service.New(place, config.Settings{}, unclosed{d.store}, slog.New(slog.DiscardHandler)), kept{d.bell})
}

// unclosed is a store that is not closed with the process that uses it.
type unclosed struct{ store.Store }

// Close does nothing.
func (unclosed) Close() error { return nil }

// wait has n tasks wait, of whose rings none is heard.
func (d *deployment) wait(n int) {
	d.t.Helper()
	j := journal.Open(d.store, journal.Options{})
	defer func() { _ = j.Close() }()
	s := d.process()
	defer func() { _ = s.Close() }()
	q := queue.Open(queue.Options{Store: d.store, Journal: j, Definitions: s.Definitions})
	for from := 0; from < n; from += queue.MaxBatch {
		var news []queue.New
		for i := from; i < min(n, from+queue.MaxBatch); i++ {
			news = append(news, queue.New{Dialect: task.Job, Job: "/work", Payload: fmt.Append(nil, i)})
		}
		if _, err := q.Enqueue(d.t.Context(), nil, news...); err != nil {
			d.t.Fatal(err)
		}
	}
}

// sweep does what the function sweep does for tasks.
func (d *deployment) sweep() {
	d.t.Helper()
	s := d.process()
	defer func() { _ = s.Close() }()
	if _, err := s.Queue.Sweep(d.t.Context()); err != nil {
		d.t.Error(err)
	}
}

// serve invokes the function for what is rung, as Lambda's event source does, until ctx ends.
func (d *deployment) serve(ctx context.Context) {
	var pollers sync.WaitGroup
	for range concurrency {
		pollers.Go(func() {
			s := d.process()
			defer func() { _ = s.Close() }()
			invoker, err := host.NewInvoker(over(s, worker.Targets{Go: worker.Functions{"f": d.run}}))
			if err != nil {
				d.t.Error(err)
				return
			}
			for {
				rings, err := d.bell.Receive(ctx, batchSize)
				if err != nil {
					return
				}
				d.invoke(invoker, rings)
			}
		})
	}
	pollers.Wait()
}

func (d *deployment) invoke(invoker *host.Invoker, rings []bell.Ring) {
	var event events.SQSEvent
	for i, ring := range rings {
		event.Records = append(event.Records, events.SQSMessage{MessageId: fmt.Sprint(i), EventSource: "aws:sqs", Body: sqs.Format(ring)})
	}
	payload, err := json.Marshal(event)
	if err != nil {
		d.t.Error(err)
	}
	d.invoked.Add(1)
	d.messages.Add(int64(len(rings)))
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	answer, err := invoker.Invoke(ctx, payload)
	if want := `{"batchItemFailures":[]}`; err != nil || string(answer) != want {
		d.t.Errorf("Invoke = %s, %v, want %s", answer, err, want)
	}
}

// run takes a second, more or less.
func (d *deployment) run(ctx context.Context, a *worker.Attempt, _ *worker.Log) (json.RawMessage, error) {
	h := fnv.New32a()
	_, _ = h.Write(a.Payload)
	select {
	case <-time.After(500*time.Millisecond + time.Duration(h.Sum32()%1000)*time.Millisecond):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if times, again := d.ran.LoadOrStore(string(a.Payload), 1); again {
		d.t.Errorf("task %s ran again, after %v", a.Payload, times)
	}
	d.count.Add(1)
	return nil, nil
}

// TestABacklogWithoutRingsDrainsAtTheWorkersPace: one sweep is enough, however long the queue is, and each task costs what it
// costs with a short one.
func TestABacklogWithoutRingsDrainsAtTheWorkersPace(t *testing.T) {
	for _, n := range []int{1_000, 10_000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			cryptotest.SetGlobalRandom(t, 1)
			synctest.Test(t, func(t *testing.T) {
				d := deploy(t, faulty.Faults{})
				d.wait(n)
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() { d.serve(ctx); close(done) }()
				d.store.Reset()
				began := time.Now()
				d.sweep()
				for d.count.Load() < int64(n) && time.Since(began) < time.Hour {
					time.Sleep(100 * time.Millisecond)
				}
				took := time.Since(began)
				time.Sleep(time.Minute)
				u := d.store.Usage()
				synctest.Wait()
				stop()
				<-done
				t.Logf("%d of %d tasks of a second took %v with %d invocations for %d rings; each cost %.1f calls: %+v",
					d.count.Load(), n, took, d.invoked.Load(), d.messages.Load(), float64(u.Total().Calls)/float64(n), u)
			})
		})
	}
}
