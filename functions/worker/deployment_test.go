package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/millrace/millrace/shared/config"
	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/host"
	"github.com/millrace/millrace/shared/notifier"
	"github.com/millrace/millrace/shared/notifier/faulty"
	"github.com/millrace/millrace/shared/notifier/local"
	"github.com/millrace/millrace/shared/notifier/sqs"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/service"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/store/meter"
	"github.com/millrace/millrace/shared/task"
	"github.com/millrace/millrace/shared/worker"
)

// The settings of the function in template.yaml.
const (
	timeout     = 900 * time.Second
	batchSize   = 10
	concurrency = 16
)

// deployment is the function as Lambda runs it, in processes that share a store and a queue of notifications.
type deployment struct {
	t        *testing.T
	store    *meter.Meter
	notifier notifier.Line
	length   time.Duration // of a task, about

	down             atomic.Pointer[error]
	ran              sync.Map // payloads
	count            atomic.Int64
	invoked, notices atomic.Int64
}

// shared is a store that other processes may reach too.
type shared struct{ store.Store }

// Exclusive returns false.
func (shared) Exclusive() bool { return false }

func deploy(t *testing.T, length time.Duration, luck faulty.Faults) *deployment {
	t.Helper()
	d := &deployment{t: t, length: length, store: meter.New(shared{memory.New(memory.Options{})})}
	d.notifier = post{faulty.New(local.New(), 1, luck, nil)}
	set := &definition.Set{Jobs: []definition.Job{{Path: "/work", Target: definition.Target{Go: "f"}}}}
	s := d.process()
	defer func() { _ = s.Close() }()
	if _, err := s.Definitions.Apply(t.Context(), set, definition.FromFile); err != nil {
		t.Fatal(err)
	}
	return d
}

// post is a notifier that carries messages, as SQS does: the functions get their bodies. It is not closed with a process.
type post struct{ notifier.Line }

// Notice sends messages.
func (p post) Notify(ctx context.Context, notices ...notifier.Notice) error {
	messages := make([]notifier.Notice, len(notices))
	for i, notice := range notices {
		messages[i] = notifier.Notice{Queue: sqs.Format(notice), At: notice.At}
	}
	return p.Line.Notify(ctx, messages...)
}

// Close does nothing.
func (post) Close() error { return nil }

// outage is a store whose queries fail now and then.
type outage struct {
	store.Store
	down *atomic.Pointer[error]
}

// errPanic makes queries panic.
var errPanic = errors.New("panic")

// Query fails if it is told to.
func (o outage) Query(ctx context.Context, r store.Range) (store.Page, error) {
	switch err := o.down.Load(); {
	case err == nil:
		return o.Store.Query(ctx, r)
	case errors.Is(*err, errPanic):
		panic(*err)
	default:
		return store.Page{}, *err
	}
}

// fail makes the queries of workers fail from now on; nil: no longer.
func (d *deployment) fail(err error) {
	if err == nil {
		d.down.Store(nil)
		return
	}
	d.down.Store(&err)
}

// process starts one of a worker.
func (d *deployment) process() *service.Tasks { return d.over(outage{d.store, &d.down}) }

// over starts a process over a store.
func (d *deployment) over(s store.Store) *service.Tasks {
	place := host.PlaceOf(func(name string) string { return map[string]string{"AWS_LAMBDA_RUNTIME_API": "test"}[name] })
	place.Metrics = nil
	return service.NewTasks(service.New(place, config.Settings{}, unclosed{s}, slog.New(slog.DiscardHandler)), d.notifier)
}

// unclosed is a store that is not closed with the process that uses it.
type unclosed struct{ store.Store }

// Close does nothing.
func (unclosed) Close() error { return nil }

// wait adds n tasks whose notifications are lost.
func (d *deployment) wait(n int) {
	d.t.Helper()
	s := d.over(d.store)
	defer func() { _ = s.Close() }()
	s.Queue = queue.Open(queue.Options{Store: d.store, Journal: s.Journal, Definitions: s.Definitions})
	d.enqueue(s.Queue, n)
}

func (d *deployment) enqueue(q *queue.Queue, n int) {
	d.t.Helper()
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

// sweep runs the part of the function sweep that is for tasks.
func (d *deployment) sweep() {
	d.t.Helper()
	s := d.over(d.store)
	defer func() { _ = s.Close() }()
	if _, err := s.Queue.Sweep(d.t.Context()); err != nil {
		d.t.Error(err)
	}
}

// serve invokes the function with the messages, as Lambda's event source does, until ctx ends.
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
				notices, err := d.notifier.Receive(ctx, batchSize)
				if err != nil {
					return
				}
				d.invoke(invoker, notices)
			}
		})
	}
	pollers.Wait()
}

func (d *deployment) invoke(invoker *host.Invoker, notices []notifier.Notice) {
	var event events.SQSEvent
	for i, notice := range notices {
		event.Records = append(event.Records, events.SQSMessage{MessageId: fmt.Sprint(i), EventSource: "aws:sqs", Body: notice.Queue})
	}
	payload, err := json.Marshal(event)
	if err != nil {
		d.t.Error(err)
	}
	d.invoked.Add(1)
	d.notices.Add(int64(len(notices)))
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	answer, err := invoker.Invoke(ctx, payload)
	if want := `{"batchItemFailures":[]}`; err != nil || string(answer) != want {
		d.t.Errorf("Invoke = %s, %v, want %s", answer, err, want)
	}
}

// run takes as long as tasks do, give or take a half.
func (d *deployment) run(ctx context.Context, a *worker.Attempt, _ *worker.Log) (json.RawMessage, error) {
	h := fnv.New64a()
	_, _ = h.Write(a.Payload)
	select {
	case <-time.After(d.length/2 + time.Duration(h.Sum64()%uint64(d.length))):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if _, again := d.ran.LoadOrStore(string(a.Payload), true); again {
		d.t.Errorf("task %s ran again", a.Payload)
	}
	d.count.Add(1)
	return nil, nil
}

// drain returns how long n waiting tasks take from the first sweep on. With sweeps, a further one comes each minute.
func (d *deployment) drain(n int, sweeps bool) (took time.Duration) {
	d.t.Helper()
	stop := d.start()
	defer stop()
	d.store.Reset()
	d.sweep()
	took = d.await(n, func(since time.Duration) {
		if sweeps && since%time.Minute == 0 {
			d.sweep()
		}
	})
	time.Sleep(notifier.MaxDelay)
	last := d.invoked.Load()
	time.Sleep(notifier.MaxDelay)
	if again := d.invoked.Load() - last; again > 0 {
		d.t.Errorf("the function was invoked %d times when all was long done", again)
	}
	return took
}

// start serves until stop is called.
func (d *deployment) start() (stop func()) {
	ctx, cancel := context.WithCancel(d.t.Context())
	done := make(chan struct{})
	go func() { d.serve(ctx); close(done) }()
	return func() { cancel(); <-done }
}

// await waits until n tasks have run, and returns how long that takes. Meanwhile is called ten times a second.
func (d *deployment) await(n int, meanwhile func(since time.Duration)) (took time.Duration) {
	d.t.Helper()
	const step = 100 * time.Millisecond
	for ; d.count.Load() < int64(n) && took < 3*time.Hour; took += step {
		time.Sleep(step)
		meanwhile(took + step)
	}
	if got := d.count.Load(); got != int64(n) {
		d.t.Errorf("%d tasks ran, want %d", got, n)
	}
	return took
}
