package bench

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/task"
	"github.com/millrace/millrace/shared/worker"
)

// Tasks measures how fast tasks are enqueued and run, and how soon they start.
type Tasks struct {
	Scratch
	Sides
	Tasks     int           `help:"Tasks of each case." default:"100000"`
	Producers int           `help:"How many enqueue at once." default:"16"`
	Workers   int           `help:"How many run at once." default:"16"`
	Size      int           `help:"Bytes of a task's payload." default:"256"`
	Rate      int           `help:"Tasks per second while the time to start is measured." default:"300"`
	Backlog   []int         `help:"Waiting tasks while the time to start is measured." default:"0,1000000"`
	Duration  time.Duration `help:"How long the time to start is measured." default:"5s"`
}

// Help says what the columns mean.
func (Tasks) Help() string {
	return `TASKS/S is over HTTP: goroutines of one client enqueue, and one instance of that many workers runs, against a server in a process of
its own. INSIDE is the engine alone, in this process, and so is all that follows.
Every task is durable when its enqueueing is answered, and so is its start and its end; each of them is an event on the journal.
The tasks do nothing. HEAP is what is in use in memory at the end of the case, without garbage, while the tasks wait that the case
leaves waiting: it does not grow with them. The time to start is not counted in the first second; a task is synced to the disk
twice until then, and the disk alone takes as long as the row before says. DISK/S is how many records of that size the disk takes
from so many writers, measured just before.`
}

// Run measures every case.
func (b Tasks) Run(ctx context.Context, p Program) (*Results, error) {
	r := newResults("CASE\tTASKS\tTASKS/S\tINSIDE\tP50\tP95\tP99\tINVERSIONS\tHEAP\tDISK/S",
		"case", "tasks", "tasks_per_s", "tasks_per_s_in_process", "p50_ms", "p95_ms", "p99_ms", "inversions", "heap", "disk_per_s")
	var wire []rate
	if !b.InProcess {
		var err error
		if wire, err = b.overHTTP(ctx, p); err != nil || b.HTTP {
			for i, over := range wire {
				r.add(cases[i], b.Tasks, over, unmeasured{}, unmeasured{}, unmeasured{}, unmeasured{}, unmeasured{}, unmeasured{}, unmeasured{})
			}
			return r, err
		}
	}
	on := func(measure func(*bed) error) error {
		function := definition.Target{Go: "nothing"}
		return b.bed(ctx, p, &definition.Set{Jobs: []definition.Job{{Path: benchJob, Target: function}, {Path: benchIdle, Target: function}}}, measure)
	}
	err := errors.Join(
		on(func(bed *bed) error { return b.throughput(ctx, r, bed, wire) }),
		on(func(bed *bed) error { return b.one(ctx, r, bed) }))
	for _, backlog := range b.Backlog {
		err = errors.Join(err, on(func(bed *bed) error { return b.latency(ctx, r, bed, backlog) }))
	}
	return r, err
}

// the jobs of a bed: one whose tasks are run, and one whose tasks wait.
const (
	benchJob  = "/bench/run"
	benchIdle = "/bench/idle"
)

// enqueue adds n tasks through so many producers, with priorities if mixed.
func (b Tasks) enqueue(ctx context.Context, bed *bed, n, producers int, mixed bool) error {
	var next atomic.Int64
	payload := text(b.Size)
	return together(ctx, producers, func(ctx context.Context, _ int) error {
		for {
			i := next.Add(1)
			if i > int64(n) || ctx.Err() != nil {
				return nil
			}
			t := queue.New{Dialect: task.Job, Job: benchJob, Payload: payload}
			if mixed {
				t.Priority = i * 7919 % 1000
			}
			if _, err := bed.Queue.Enqueue(ctx, nil, t); err != nil {
				return err
			}
		}
	})
}

// work runs tasks in a pool until n have run; run is called for each when it starts.
func (b Tasks) work(ctx context.Context, bed *bed, n, workers int, run func(*worker.Attempt)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var done atomic.Int64
	functions := worker.Functions{"nothing": func(_ context.Context, a *worker.Attempt, _ *worker.Log) (json.RawMessage, error) {
		if run != nil {
			run(a)
		}
		if done.Add(1) == int64(n) {
			cancel()
		}
		return nil, nil
	}}
	return worker.NewPool(worker.PoolOptions{
		Workers: workers, Notifier: bed.Notifier, Claimer: queue.Claimer{Instance: "bench", Queues: []string{definition.MainQueue}},
		Runner: worker.NewRunner(worker.Options{
			Engine: bed.Queue, Definitions: bed.Definitions, Targets: worker.Targets{Go: functions},
		}),
	}).Run(ctx)
}

// cases are those of throughput.
var cases = [...]string{"enqueue", "run", "enqueue and run"}

// throughput measures enqueueing alone, running alone, and both at once; wire are the rates over HTTP, if they were measured.
func (b Tasks) throughput(ctx context.Context, r *Results, bed *bed, wire []rate) error {
	enqueue := func() error { return b.enqueue(ctx, bed, b.Tasks, b.Producers, false) }
	run := func() error { return b.work(ctx, bed, b.Tasks, b.Workers, nil) }
	both := func() error {
		return together(ctx, 2, func(_ context.Context, i int) error { return []func() error{enqueue, run}[i]() })
	}
	for i, do := range []func() error{enqueue, run, both} {
		over := rate(0)
		if i < len(wire) {
			over = wire[i]
		}
		if err := b.timed(r, bed, cases[i], over, do); err != nil {
			return err
		}
	}
	return nil
}

func (b Tasks) timed(r *Results, bed *bed, name string, wire rate, do func() error) error {
	disk, err := diskFloor(bed.dir, b.Producers, b.Size, time.Second)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := do(); err != nil {
		return err
	}
	elapsed := time.Since(began)
	r.add(name, b.Tasks, wire, rate(float64(b.Tasks)/elapsed.Seconds()),
		unmeasured{}, unmeasured{}, unmeasured{}, unmeasured{}, heapNow(), rate(disk))
	return nil
}

// heapNow returns the memory in use in this process now.
func heapNow() size {
	runtime.GC()
	runtime.GC() // what pools keep goes with the second
	return liveHeap()
}

// one lets a single worker run tasks of mixed priorities and counts those that were started before a better one.
func (b Tasks) one(ctx context.Context, r *Results, bed *bed) error {
	n := max(1, b.Tasks/4)
	if err := b.enqueue(ctx, bed, n, 64, true); err != nil {
		return err
	}
	began := time.Now()
	ids, err := inTurn(ctx, bed, n)
	if err != nil {
		return err
	}
	elapsed := time.Since(began)
	inversions, err := countInversions(ctx, bed, ids)
	r.add("one worker, priorities", n, rate(0), rate(float64(n)/elapsed.Seconds()), unmeasured{}, unmeasured{}, unmeasured{}, inversions, heapNow(), unmeasured{})
	return err
}

// inTurn lets one worker claim tasks as many at a time as it may, and returns them in the order in which it ran them.
func inTurn(ctx context.Context, bed *bed, n int) (ids []task.ID, err error) {
	for len(ids) < n {
		leases, err := bed.Queue.Claim(ctx, queue.Claimer{Instance: "bench", Queues: []string{definition.MainQueue}}, queue.MaxClaim)
		if err != nil {
			return nil, err
		}
		for i := range leases {
			ids = append(ids, leases[i].Task.ID)
		}
		if err := together(ctx, len(leases), func(ctx context.Context, i int) error {
			_, err := bed.Queue.Complete(ctx, leases[i].Token, queue.Result{Outcome: queue.OK})
			return err
		}); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// countInversions counts neighbours in the order of starts that should have been the other way round.
func countInversions(ctx context.Context, bed *bed, ids []task.ID) (n int, err error) {
	var before task.Task
	for i, id := range ids {
		t, err := bed.Queue.Get(ctx, id)
		if err != nil {
			return n, err
		}
		if i > 0 && cmp.Or(-cmp.Compare(before.Priority, t.Priority), cmp.Compare(before.Created, t.Created)) > 0 {
			n++
		}
		before = t
	}
	return n, nil
}

// latency measures the time from the sending of a task to its start, at an even pace, while others wait.
func (b Tasks) latency(ctx context.Context, r *Results, bed *bed, backlog int) error {
	if err := b.wait(ctx, bed, backlog); err != nil {
		return err
	}
	early := b.Rate // those of the first second, in which the process warms up, are left out
	n := early + max(1, int(b.Duration.Seconds()*float64(b.Rate)))
	disk, err := twoSyncs(bed.dir, b.Size, b.Rate, n-early)
	if err != nil {
		return err
	}
	b.times(r, "two syncs of the disk alone", disk)
	sent, laps := sync.Map{}, make(chan time.Duration, n)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ran := make(chan error, 1)
	go func() {
		ran <- b.work(ctx, bed, n, b.Workers, func(a *worker.Attempt) {
			now := time.Now()
			var number int
			_ = json.Unmarshal(a.Payload, &number) // made below
			if at, known := sent.Load(number); known && number >= early {
				laps <- now.Sub(at.(time.Time))
			}
		})
	}()
	if err := b.pace(ctx, bed, n, &sent); err != nil {
		cancel()
		return errors.Join(err, <-ran)
	}
	err = <-ran
	close(laps)
	var all []time.Duration
	for lap := range laps {
		all = append(all, lap)
	}
	b.times(r, fmt.Sprintf("time to start, %d waiting", backlog), all)
	return err
}

// times adds a row of times that were measured at the even pace.
func (b Tasks) times(r *Results, name string, all []time.Duration) {
	slices.Sort(all)
	r.add(name, len(all), rate(0), rate(b.Rate),
		quantile(all, 0.5), quantile(all, 0.95), quantile(all, 0.99), unmeasured{}, heapNow(), unmeasured{})
}

// wait makes tasks that are ready and stay so, in a queue that the workers do not take from.
func (b Tasks) wait(ctx context.Context, bed *bed, n int) error {
	payload := text(b.Size)
	return together(ctx, 8, func(ctx context.Context, w int) error {
		for i := w * queue.MaxBatch; i < n; i += 8 * queue.MaxBatch {
			news := make([]queue.New, min(queue.MaxBatch, n-i))
			for k := range news {
				news[k] = queue.New{Dialect: task.Job, Job: benchIdle, Queue: "idle", Payload: payload}
			}
			if _, err := bed.Queue.Enqueue(ctx, nil, news...); err != nil {
				return err
			}
		}
		return nil
	})
}

// pace sends tasks at an even pace; each is told by its number.
func (b Tasks) pace(ctx context.Context, bed *bed, n int, sent *sync.Map) error {
	ticker := time.NewTicker(time.Second / time.Duration(max(b.Rate, 1)))
	defer ticker.Stop()
	var group sync.WaitGroup
	defer group.Wait()
	for i := range n {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
		payload, err := json.Marshal(i)
		if err != nil {
			return err
		}
		group.Go(func() { // an open loop: a slow response delays no other request
			sent.Store(i, time.Now())
			_, _ = bed.Queue.Enqueue(ctx, nil, queue.New{Dialect: task.Job, Job: benchJob, Priority: 1, Payload: payload})
		})
	}
	return nil
}
