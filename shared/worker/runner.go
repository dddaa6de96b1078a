package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/notifier"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/task"
)

// Options are those of a Runner. Engine and Definitions are required.
type Options struct {
	Engine      Engine            // grants the leases
	Definitions Definitions       // say what a task's job is
	Targets     Targets           // what tasks can run on; a task of another target fails
	URL         string            // of this server, without a slash at its end, for callbacks; default: attempts have none
	Grace       time.Duration     // how long an attempt may take to end after its context has; default 10 s
	LastGrace   time.Duration     // the same when the worker shuts down; default: Grace
	MaxLog      int               // bytes of log that an attempt keeps; default and at most 4 KiB less than [tasklog.MaxLog]
	Log         *slog.Logger      // default: nothing is logged
	Notifier    notifier.Notifier // the notifier by which [Runner.RunBatch] calls for another batch; default: it does not
	Workers     int               // how many workers a batch of [Runner.RunBatch] may have; default: one for each notification
	Stopping    context.Context   // ends when batches of [Runner.RunBatch] are to claim no more; default: never
}

// Runner runs leases. Its methods may be called concurrently.
type Runner struct{ o Options }

// NewRunner returns a Runner.
func NewRunner(o Options) *Runner {
	if o.Grace <= 0 {
		o.Grace = 10 * time.Second
	}
	if o.LastGrace <= 0 {
		o.LastGrace = o.Grace
	}
	if o.MaxLog <= 0 || o.MaxLog > maxLog {
		o.MaxLog = maxLog
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Stopping == nil {
		o.Stopping = context.Background()
	}
	return &Runner{o: o}
}

// Run runs the task of a lease and completes it. It returns when that is done, when the lease is lost, or when the attempt goes on
// elsewhere ([Later]).
//
// When ctx ends, so does the attempt: if the cause is [context.DeadlineExceeded], it has failed; otherwise the task goes back
// to its queue and the attempt is not counted. An attempt that does not end within the grace is abandoned.
func (r *Runner) Run(ctx context.Context, lease queue.Lease) { r.run(ctx, lease, nil) }

// run is Run, but completes the task together with a claim of the next one for the claimer that next returns, if not nil.
func (r *Runner) run(ctx context.Context, lease queue.Lease, next func() *queue.Claimer) []queue.Lease {
	run, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	h := newHold(ctx, r.o.Engine, &lease, cancel)
	defer h.release()
	log := newLog(h, r.o.MaxLog)
	result := r.attempt(run, cancel, &lease, log)
	log.close()
	if result.Outcome == Later {
		return nil
	}
	var by *queue.Claimer
	if next != nil {
		by = next()
	}
	leases, err := h.complete(result, by)
	if err != nil {
		r.o.Log.Warn("how a task ended could not be told", "task", string(lease.Task.ID), "attempt", lease.Task.Attempt, "error", err)
	}
	return leases
}

// giveBack returns a task that was not begun to its queue, without counting an attempt.
func (r *Runner) giveBack(ctx context.Context, lease queue.Lease) {
	h := newHold(ctx, r.o.Engine, &lease, func(error) {})
	defer h.release()
	back := queue.Result{Outcome: queue.Again, RetryDelay: time.Microsecond, Message: "its worker had too little time left for it"}
	if _, err := h.complete(back, nil); err != nil {
		r.o.Log.Warn("a task could not be given back", "task", string(lease.Task.ID), "attempt", lease.Task.Attempt, "error", err)
	}
}

// attempt runs the task and returns its result. The log of a failed attempt ends with the reason, except for a program that ended
// by itself.
func (r *Runner) attempt(run context.Context, cancel context.CancelCauseFunc, lease *queue.Lease, log *Log) (result queue.Result) {
	job, target, problem := r.find(run, &lease.Task)
	if target == nil {
		log.explain(&problem)
		return problem
	}
	defer func() {
		cut := context.Cause(run)
		if !errors.Is(cut, ErrStopped) && (cut != nil || job.Target.Command == nil) {
			log.explain(&result)
		}
	}()
	job.Timeout = lease.Task.Allowed(job.Timeout)
	if job.Timeout > 0 {
		timer := time.AfterFunc(job.Timeout, func() { cancel(ErrTimeout) })
		defer timer.Stop()
	}
	asked, done := r.o.Engine.StopRequested(lease.Token)
	defer done()
	ended := make(chan queue.Result, 1) // so that the goroutine of an abandoned attempt can end
	go call(run, target, newAttempt(lease, job.Target, r.o.URL), log, ended)

	select {
	case result := <-ended:
		return judge(run, job, result)
	case <-asked:
		cancel(ErrStopped)
	case <-run.Done():
	}
	patience := r.o.Grace
	if errors.Is(context.Cause(run), ErrShutdown) {
		patience = r.o.LastGrace
	}
	grace := time.NewTimer(patience)
	defer grace.Stop()
	select {
	case result := <-ended:
		return judge(run, job, result)
	case <-grace.C:
		log.Error("the attempt did not end within %v of its context, and is left to itself", patience)
		return judge(run, job, failed("it did not end"))
	}
}

// find returns the task's job and the target that runs it, or the attempt's result if there is none.
func (r *Runner) find(ctx context.Context, t *task.Task) (definition.Job, Target, queue.Result) {
	back := queue.Result{Outcome: queue.Again, RetryDelay: time.Second}
	set, err := r.o.Definitions.Current(ctx)
	if err != nil {
		back.Message = "the definitions cannot be read: " + err.Error()
		return definition.Job{}, nil, back
	}
	job, declared := set.JobOf(t.Job)
	if !declared || job.Target.OnInstance() {
		back.Message = "its job was changed while it was being started"
		return job, nil, back
	}
	target, name := r.o.Targets.of(job.Target)
	if target == nil {
		return job, nil, failed("this server cannot run a target of the kind " + name)
	}
	return job, target, queue.Result{}
}

// call runs the target and sends the result to ended, also if the target panics or ends its goroutine.
func call(ctx context.Context, target Target, a *Attempt, log *Log, ended chan<- queue.Result) {
	result := queue.Result{Outcome: queue.Thrown, Message: "the function ended its own goroutine"}
	defer func() {
		if thrown := recover(); thrown != nil {
			result.Message = fmt.Sprintf("panic: %v", thrown)
			log.Error("%s\n%s", result.Message, debug.Stack())
		}
		ended <- result
	}()
	result = target.Run(ctx, a, log)
}

// judge returns the result of an attempt whose context may have ended. A success remains one.
func judge(run context.Context, job definition.Job, result queue.Result) queue.Result {
	if run.Err() == nil || result.Outcome == queue.OK || result.Outcome == Later {
		return result
	}
	said := result.Message
	result.Code = 0 // it was ended, so that the code is not its own
	switch cause := context.Cause(run); {
	case errors.Is(cause, ErrStopped):
		result.Outcome, result.Message = queue.Cancel, "stopped, as was asked for"
	case errors.Is(cause, ErrTimeout):
		result.Outcome, result.Message = queue.Failed, fmt.Sprintf("it took longer than the %v allowed", job.Timeout)
	case errors.Is(cause, context.DeadlineExceeded):
		result.Outcome, result.Message = queue.Failed, "it took longer than its worker may run"
	default:
		return queue.Result{Outcome: queue.Again, RetryDelay: time.Microsecond, Message: "its worker was shut down"}
	}
	if said != "" {
		result.Message += ": " + said
	}
	return result
}
