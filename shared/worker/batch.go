package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/notifier"
	"github.com/millrace/millrace/shared/queue"
)

// RunBatch runs tasks for n notifications that were received, and for early ones from their times on, with a worker
// for each, until no task is found. It returns how many tasks it ran when all of them have ended. It is for a host that
// counts its own workers, such as Lambda. The error is that of claiming; the tasks claimed before it were run.
//
// A worker that has ended a task goes on with the next while there is time for it: as much as the timeout of its job, or half
// of the batch's time if the job may take longer than all of that. If ctx has no deadline, it goes on for a minute. ctx
// should end some seconds before the host stops: attempts of the first tasks that have not ended then fail, see [Runner.Run];
// those of further ones go back to their queue and cost no attempt.
//
// A batch that finds more tasks than notifications has up to [Options].Workers workers. If there is work for all of them, it
// sends one notification for another batch. Each worker that leaves work for lack of time sends one for a worker in its
// place. So there are far fewer notifications than tasks, and they end when there are no more tasks.
//
// When [Options].Stopping ends, the batch claims no more: what it runs goes on, and what is left is for another batch.
func (r *Runner) RunBatch(ctx context.Context, by queue.Claimer, n int, early ...notifier.Notice) (ran int, err error) {
	if ctx.Err() != nil || r.o.Stopping.Err() != nil {
		return 0, errNoTime
	}
	taking, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(r.o.Stopping, end)()
	notices := n + len(early)
	b := &batch{runner: r, by: by, ctx: ctx, taking: taking, shift: newShift(ctx), more: max(0, r.o.Workers-notices)}
	b.news = make(chan news, 2*(notices+b.more)+1) // large enough that no sender waits
	for _, notice := range early {
		go func() {
			AwaitNotice(taking, notice)
			b.news <- news{busy: -1, free: 1, look: true}
		}()
	}
	err = b.hire(n, len(early))
	return int(b.ran.Load()), err
}

var errNoTime = errors.New("worker: the host leaves no time to run a task")

// batch is a group of workers that run tasks in parallel.
type batch struct {
	runner *Runner
	by     queue.Claimer
	ctx    context.Context
	taking context.Context // ends with ctx, and when no more tasks are to be claimed
	shift  shift
	more   int // workers that it may have beyond one for each notification
	news   chan news

	dry   atomic.Bool // nothing was found, or claiming has failed
	ran   atomic.Int64
	grown sync.Once
}

// news is a change in the numbers of workers.
type news struct {
	busy, free int  // how many more
	look       bool // there may be new tasks
	grown      bool // there are more tasks than notifications
}

// hire finds tasks for free workers until there are none, and waits until all workers have ended.
func (b *batch) hire(free, busy int) (err error) {
	var late, grown bool
	for {
		for free > 0 && !b.dry.Load() && b.taking.Err() == nil {
			var found int
			found, err = b.find(free, late)
			free, busy = free-found, busy+found
		}
		if grown && free == 0 {
			b.notify()
			grown = false
		}
		if busy == 0 {
			if free > 0 && !b.dry.Load() { // taking has ended
				b.notify()
			}
			return err
		}
		for first := true; first || len(b.news) > 0; first = false { // one claim serves all free workers
			n := <-b.news
			busy, free, late, grown = busy+n.busy, free+n.free, late || !n.look, grown || n.grown
			if n.look {
				b.dry.Store(false)
			}
		}
	}
}

// find claims tasks for so many free workers, starts the workers with them, and returns how many there were.
func (b *batch) find(free int, late bool) (found int, err error) {
	leases, err := claim(b.taking, b.runner.o.Engine, b.by, free)
	for _, lease := range leases {
		go b.employ(lease, late)
	}
	b.dry.Store(err != nil || len(leases) == 0)
	return len(leases), err
}

// employ runs a worker that begins with a task. A panic of the engine costs that attempt only.
func (b *batch) employ(lease queue.Lease, late bool) {
	ends := news{busy: -1}
	defer func() {
		if cause := recover(); cause != nil {
			b.runner.o.Log.Error("panic", "cause", fmt.Sprint(cause), "stack", string(debug.Stack()))
		}
		b.news <- ends
	}()
	if b.work(lease, late) {
		ends.free = 1
	}
}

// work runs a task and those that are claimed by completing it and the ones after it, and reports whether to look for others.
// A task is late if it begins after another of the batch has ended.
func (b *batch) work(lease queue.Lease, late bool) (goesOn bool) {
	for ; ; late = true {
		if late && !b.hasTime(&lease) {
			b.runner.giveBack(b.ctx, lease)
			b.notify()
			return false
		}
		if late {
			b.grown.Do(func() { b.news <- news{free: b.more, grown: true} })
		}
		next := b.run(lease, late)
		b.ran.Add(1)
		if len(next) == 0 {
			break
		}
		lease = next[0]
	}
	if goesOn = b.goesOn(&lease); !goesOn && !b.dry.Load() {
		b.notify()
	}
	return goesOn
}

// run runs a task. A late one is completed together with a claim of the next; after the first ones, which mostly are the only
// ones, a single claim looks for all workers.
func (b *batch) run(lease queue.Lease, late bool) []queue.Lease {
	ctx := b.ctx
	if late && b.shift.limited {
		within, end := context.WithDeadlineCause(ctx, b.shift.ends, ErrShutdown)
		defer end()
		ctx = within
	}
	return b.runner.run(ctx, lease, func() *queue.Claimer {
		if !late || !b.goesOn(&lease) {
			return nil
		}
		return &b.by
	})
}

// goesOn reports whether to look for another task after this one.
func (b *batch) goesOn(lease *queue.Lease) bool {
	return !b.dry.Load() && b.taking.Err() == nil && b.hasTime(lease)
}

// hasTime reports whether there is time to begin a task of that job.
func (b *batch) hasTime(lease *queue.Lease) bool {
	set, err := b.runner.o.Definitions.Current(b.ctx)
	if err != nil {
		return false
	}
	job, _ := set.JobOf(lease.Task.Job)
	return b.shift.allows(job.Timeout)
}

// notice sends a notification for another worker, which claims from all queues, whichever one is named.
func (b *batch) notify() {
	o := &b.runner.o
	if o.Notifier == nil {
		return
	}
	if err := o.Notifier.Notify(context.WithoutCancel(b.ctx), notifier.Notice{Queue: definition.MainQueue}); err != nil {
		o.Log.Warn("no other worker was notified; the sweep notifies again", "error", err)
	}
}

// shift is the time that a batch has.
type shift struct {
	began, ends time.Time
	limited     bool // by the host
}

// goOnFor is how long a batch goes on if its host sets no limit: the sender of the notifications may wait for a response.
const goOnFor = time.Minute

func newShift(ctx context.Context) shift {
	now := time.Now()
	deadline, limited := ctx.Deadline()
	if !limited {
		return shift{began: now, ends: now.Add(goOnFor)}
	}
	// The shift ends before ctx does, so that the two causes can be told apart.
	return shift{began: now, ends: deadline.Add(-min(time.Second, deadline.Sub(now)/10)), limited: true}
}

// allows reports whether there is time for an attempt that may take so long.
func (s shift) allows(timeout time.Duration) bool {
	left, whole := time.Until(s.ends), s.ends.Sub(s.began)
	switch {
	case !s.limited:
		return left > 0
	case timeout > whole: // longer than any batch may take
		return left >= whole/2
	}
	return left >= timeout
}
