package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/service"
	"github.com/millrace/millrace/shared/task"
	"github.com/millrace/millrace/shared/worker"
)

// outstanding is how many tasks a process enqueues at once at most; where that is not enough for the rate, fewer are enqueued.
const outstanding = 256

// watch counts what happens from one moment to another.
type watch struct {
	from, to time.Time

	mu       sync.Mutex
	laps     []time.Duration
	in, done int
}

func (c Cloud) watch() *watch {
	from := time.Now().Add(c.Warmup)
	return &watch{from: from, to: from.Add(c.Duration)}
}

// note counts one more of what, if it is in time, and with a lap how long it took.
func (w *watch) note(what *int, lap time.Duration) {
	now := time.Now()
	if now.Before(w.from) || !now.Before(w.to) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	*what++
	if lap >= 0 {
		w.laps = append(w.laps, lap)
	}
}

// during calls begin after the warm-up and returns at the end of the measurement.
func (w *watch) during(begin func()) {
	time.Sleep(time.Until(w.from))
	begin()
	time.Sleep(time.Until(w.to))
}

func jobOf(n int) string { return fmt.Sprintf("/bench/job%d", n) }

// jobs declares a job for each queue. Every process reads them before it begins: those that read them for the first time wait for one
// another by a lock, which stops virtual time.
func jobs(ctx context.Context, queues int, all ...*service.Tasks) error {
	set := &definition.Set{}
	for n := range queues {
		set.Jobs = append(set.Jobs, definition.Job{Path: jobOf(n), Target: definition.Target{Go: "nothing"}})
		set.Queues = append(set.Queues, definition.Queue{Name: queueOf(n)})
	}
	_, err := all[0].Definitions.ApplyFile(ctx, set)
	for _, p := range all {
		_, again := p.Definitions.Refresh(ctx)
		err = errors.Join(err, again)
	}
	return err
}

func queueOf(n int) string {
	if n == 0 {
		return definition.MainQueue
	}
	return fmt.Sprintf("queue%d", n)
}

// tasks measures tasks that are enqueued at an even rate and run by long-lived workers.
func (c Cloud) tasks(ctx context.Context, r *Results) error {
	for _, processes := range c.Processes {
		for _, queues := range c.Queues {
			for _, parts := range c.Parts {
				for _, asked := range c.Rate {
					if err := c.deploy(ctx, func(ctx context.Context, d *cloud) error {
						d.parts = parts
						return c.steady(ctx, r, d, processes, queues, asked)
					}); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

func (c Cloud) steady(ctx context.Context, r *Results, d *cloud, processes, queues, asked int) error {
	all := make([]*service.Tasks, processes)
	for i := range all {
		all[i] = d.process()
	}
	if err := jobs(ctx, queues, all...); err != nil {
		return err
	}
	w := c.watch()
	running, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	for i, p := range all {
		pool := worker.NewPool(worker.PoolOptions{
			Workers: max(1, c.Workers/processes), Notifier: p.Notifier, Claimer: queue.Claimer{Instance: fmt.Sprint("bench", i)},
			Runner: d.runner(p, func(a *worker.Attempt) { w.note(&w.done, max(0, time.Since(a.CreatedAt.Time))) }),
		})
		group.Go(func() { _ = pool.Run(running) })
		group.Go(func() { sweeping(running, p) })
		group.Go(func() { c.feed(running, p, w, i, processes, queues, asked) })
	}
	w.during(d.begin)
	name := fmt.Sprintf("tasks: %d queues, %d workers in %d processes", queues, c.Workers, processes)
	if len(c.Parts) > 1 {
		name += fmt.Sprintf(", %d parts", d.parts)
	}
	w.mu.Lock()
	c.row(r, d, name, asked, w.in, w.done, w.laps)
	w.mu.Unlock()
	stop()
	group.Wait()
	return closeAll(all)
}

// runner returns a runner whose tasks only call started.
func (d *cloud) runner(p *service.Tasks, started func(*worker.Attempt)) *worker.Runner {
	functions := worker.Functions{"nothing": func(_ context.Context, a *worker.Attempt, _ *worker.Log) (json.RawMessage, error) {
		started(a)
		return nil, nil
	}}
	return worker.NewRunner(worker.Options{Engine: p.Queue, Definitions: p.Definitions, Targets: worker.Targets{Go: functions}})
}

// sweeping does a process's upkeep of tasks each minute, as a server does.
func sweeping(ctx context.Context, p *service.Tasks) {
	for {
		_, _ = p.Queue.Sweep(ctx) // what fails is tried again a minute later
		_, _ = p.Queue.NotifyDue(ctx, time.Now().Add(2*time.Minute))
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Minute):
		}
	}
}

// feed enqueues a process's part of the rate, into one queue after the other.
func (c Cloud) feed(ctx context.Context, p *service.Tasks, w *watch, first, processes, queues, asked int) {
	if asked <= 0 {
		return
	}
	payload := text(c.Size)
	ticker := time.NewTicker(time.Second * time.Duration(processes) / time.Duration(asked))
	defer ticker.Stop()
	var busy atomic.Int64
	var group sync.WaitGroup
	defer group.Wait()
	for n := first; ; n += processes {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if busy.Load() >= outstanding {
			continue
		}
		busy.Add(1)
		group.Go(func() {
			defer busy.Add(-1)
			t := queue.New{Dialect: task.Job, Job: jobOf(n % queues), Queue: queueOf(n % queues), Payload: payload}
			if _, err := p.Queue.Enqueue(ctx, nil, t); err == nil {
				w.note(&w.in, -1)
			}
		})
	}
}

// backlog measures functions that run tasks which wait already.
func (c Cloud) backlog(ctx context.Context, r *Results) error {
	return c.deploy(ctx, func(ctx context.Context, d *cloud) error {
		all := make([]*service.Tasks, 1+c.Functions)
		for i := range all {
			all[i] = d.process()
		}
		if err := errors.Join(jobs(ctx, 1, all...), c.fill(ctx, all[0])); err != nil {
			return err
		}
		w := c.watch()
		running, stop := context.WithCancel(ctx)
		var group sync.WaitGroup
		for i, p := range all[1:] {
			group.Go(func() { c.function(running, d, p, w, i) })
		}
		w.during(d.begin)
		w.mu.Lock()
		c.row(r, d, fmt.Sprintf("backlog of %d, %d functions", c.Backlog, c.Functions), 0, 0, w.done, w.laps)
		w.mu.Unlock()
		stop()
		group.Wait()
		return closeAll(all)
	})
}

// fill enqueues the backlog, as fast as the store takes it.
func (c Cloud) fill(ctx context.Context, p *service.Tasks) error {
	payload := text(c.Size)
	for added := 0; added < c.Backlog; {
		news := make([]queue.New, min(20, c.Backlog-added))
		for i := range news {
			news[i] = queue.New{Dialect: task.Job, Job: jobOf(0), Queue: queueOf(0), Payload: payload}
		}
		if _, err := p.Queue.Enqueue(ctx, nil, news...); err == nil {
			added += len(news)
		}
	}
	return nil
}

// function is one of the functions: each notification gives it a minute.
func (c Cloud) function(ctx context.Context, d *cloud, p *service.Tasks, w *watch, i int) {
	var last time.Time // when it started the task before
	runner := d.runner(p, func(*worker.Attempt) {
		lap := time.Duration(-1)
		if !last.IsZero() {
			lap = time.Since(last)
		}
		w.note(&w.done, lap)
		last = time.Now()
	})
	for ctx.Err() == nil {
		notices, err := p.Notifier.Receive(ctx, 1)
		if err != nil {
			return
		}
		last = time.Time{}
		batch, cancel := context.WithTimeout(ctx, time.Minute)
		_, _ = runner.RunBatch(batch, queue.Claimer{Instance: fmt.Sprint("function", i)}, len(notices))
		cancel()
	}
}

func closeAll(all []*service.Tasks) (err error) {
	for _, p := range all {
		err = errors.Join(err, p.Close())
	}
	return err
}
