package view

import (
	"context"
	"fmt"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/queue/rule"
	"github.com/millrace/millrace/shared/task"
)

// The codes of a [Reason].
const (
	ReasonRunning    = "running"
	ReasonStopping   = "stopping"    // it runs, and was asked to stop
	ReasonFinished   = "finished"    // its state says how
	ReasonMissing    = "missing"     // there is no such job
	ReasonDelayed    = "delayed"     // it waits for its requested start time
	ReasonRetrying   = "retrying"    // it waits for the time of its next attempt
	ReasonPaused     = "paused"      // an operator has paused its job
	ReasonBlocked    = "blocked"     // an admin has blocked its job
	ReasonSuspended  = "suspended"   // its queue is suspended
	ReasonLimitQueue = "limit_queue" // its queue has reached its limit
	ReasonLimitKey   = "limit_key"   // its concurrency key has reached its limit
	// ReasonLimitInstance: all instances that run its job have reached their capacity.
	ReasonLimitInstance = "limit_instance"

	ReasonOrdered    = "ordered"    // an older task of its ordered queue goes first
	ReasonUnassigned = "unassigned" // no instance runs its job
	ReasonBehind     = "behind"     // other tasks of its queue come first
	ReasonNext       = "next"       // it is the next of its queue
)

// ReasonCodes returns all codes of a [Reason].
func ReasonCodes() []string {
	return []string{
		ReasonRunning, ReasonStopping, ReasonFinished, ReasonMissing, ReasonDelayed, ReasonRetrying, ReasonPaused, ReasonBlocked,
		ReasonSuspended, ReasonLimitQueue, ReasonLimitKey, ReasonLimitInstance, ReasonOrdered, ReasonUnassigned, ReasonBehind, ReasonNext,
	}
}

// Reason is why a task is not running, or that it is.
type Reason struct {
	State   task.State     // of a queued task: waiting or ready
	Code    string         // stable; one of [ReasonCodes]
	Reason  string         // one sentence
	Since   time.Time      // of the attempt, the end, the rule or the suspension; for other reasons, the task's creation
	Details map[string]any // the values that the sentence names, for programs
}

// Why returns why a task is not running, or that it is. The error is [layout.ErrNoTask] if there is no such task.
func (v *Tasks) Why(ctx context.Context, id task.ID) (Reason, error) {
	t, err := v.Get(ctx, id)
	if err != nil {
		return Reason{}, err
	}
	switch {
	case t.State == task.Running:
		return v.whyRunning(ctx, &t), nil
	case t.State.Final():
		return whyFinished(&t), nil
	default:
		return v.whyQueued(ctx, &t)
	}
}

func (v *Tasks) whyRunning(ctx context.Context, t *task.Task) Reason {
	r := Reason{
		State: task.Running, Code: ReasonRunning, Since: time.UnixMicro(t.Started),
		Reason:  fmt.Sprintf("It is running: attempt %d, on %s.", t.Attempt, nameOf(t.Instance)),
		Details: map[string]any{"attempt": t.Attempt, "instance": t.Instance},
	}
	h, err := layout.LoadLease(ctx, v.o.Store, t.Lease)
	if err != nil {
		return r // it has just ended
	}
	r.Details["lease_expires_at"] = time.UnixMicro(h.Expires).UTC()
	if set, err := v.o.Definitions.Current(ctx); err == nil {
		job, _ := set.JobOf(t.Job)
		r.Details["timeout_at"] = time.UnixMicro(t.Started).Add(t.Allowed(job.Timeout)).UTC()
	}
	if h.Stop {
		r.Code, r.Reason = ReasonStopping, "It is running and has been asked to stop; its worker has not answered yet."
	}
	return r
}

func nameOf(instance string) string {
	if instance == "" {
		return "a worker"
	}
	return instance
}

func whyFinished(t *task.Task) Reason {
	r := Reason{
		State: t.State, Code: ReasonFinished, Since: time.UnixMicro(t.Finished),
		Details: map[string]any{"attempts": t.Attempt},
	}
	if t.Message != "" {
		r.Details["message"] = t.Message
	}
	switch t.State {
	case task.Succeeded:
		r.Reason = fmt.Sprintf("It has succeeded, at attempt %d.", t.Attempt)
	case task.Failed:
		r.Reason = fmt.Sprintf("It has failed, at attempt %d, its last.", t.Attempt)
	case task.Rejected:
		r.Reason = fmt.Sprintf("Its handler has rejected it, at attempt %d.", t.Attempt)
	case task.Missing:
		r.Code, r.Reason = ReasonMissing, fmt.Sprintf("There is no job %s that could run it.", t.Job)
	case task.Dropped:
		r.Reason = "It was removed."
	default:
		r.Reason = "It was stopped by request."
	}
	return r
}

func (v *Tasks) whyQueued(ctx context.Context, t *task.Task) (Reason, error) {
	now := v.o.Now().UnixMicro()
	r := Reason{State: task.Waiting, Since: time.UnixMicro(t.Created), Details: map[string]any{"queue": t.Queue, "priority": t.Priority}}
	rules, err := v.o.Rulebook.InForce(ctx)
	if err != nil {
		return r, err
	}
	if rule := rules.Jobs[t.Job]; rule != nil {
		r.ruled(rule.Rules)
		return r, nil
	}
	set, err := v.o.Definitions.Current(ctx)
	if err != nil {
		return r, err
	}
	if since := rules.SuspendedSince(set, t.Queue); !since.IsZero() {
		r.Code, r.Since, r.Reason = ReasonSuspended, since, fmt.Sprintf("An operator has suspended the queue %s.", t.Queue)
		return r, nil
	}
	if t.NotBefore > now {
		r.delayed(t)
		return r, nil
	}
	job, declared := set.JobOf(t.Job)
	if !declared {
		job.Path = t.Job
	}
	if found, err := v.whyLimited(ctx, t, set.QueueOf(t.Queue), &r); err != nil || found {
		return r, err
	}
	return r, v.whyInLine(ctx, t, set.QueueOf(t.Queue), layout.LineOf(t.Queue, job, declared), &r)
}

func (r *Reason) ruled(rules rule.Rules) {
	r.Details["job"] = rules.Path
	if !rules.Block.IsZero() {
		r.Code, r.Since = ReasonBlocked, rules.Block
		r.Reason = fmt.Sprintf("An admin has blocked %s.", rules.Path)
		return
	}
	r.Code, r.Since = ReasonPaused, rules.Pause
	r.Reason = fmt.Sprintf("An operator has paused %s.", rules.Path)
}

func (r *Reason) delayed(t *task.Task) {
	at := time.UnixMicro(t.NotBefore).UTC()
	r.Details["until"] = at
	if t.Attempt == 0 {
		r.Code = ReasonDelayed
		r.Reason = fmt.Sprintf("It is not to start before %s.", at.Format(time.RFC3339))
		return
	}
	r.Code = ReasonRetrying
	r.Details["attempt"], r.Details["attempts"] = t.Attempt, t.Attempts
	if t.Message != "" {
		r.Details["message"] = t.Message
	}
	r.Reason = fmt.Sprintf("Attempt %d failed; the next one is at %s.", t.Attempt, at.Format(time.RFC3339))
}

// whyLimited sets the reason if a limit is reached, and reports whether one is.
func (v *Tasks) whyLimited(ctx context.Context, t *task.Task, c definition.Queue, r *Reason) (found bool, err error) {
	if key := t.Concurrency; key != nil {
		running, err := v.slotsTaken(ctx, layout.KeyLimit(key.Key))
		if err != nil {
			return false, err
		}
		if running >= key.Limit {
			r.Code = ReasonLimitKey
			r.Reason = fmt.Sprintf("The concurrency key %q has reached its limit: %d at once.", key.Key, key.Limit)
			r.Details["key"], r.Details["limit"], r.Details["running"] = key.Key, key.Limit, running
			return true, nil
		}
	}
	if c.MaxParallel <= 0 || c.Type == definition.Ordered {
		return false, nil
	}
	running, err := v.slotsTaken(ctx, layout.QueueLimit(c.Name))
	if err != nil || running < c.MaxParallel {
		return false, err
	}
	r.Code = ReasonLimitQueue
	r.Reason = fmt.Sprintf("The queue %s has reached its limit: %d at once.", c.Name, c.MaxParallel)
	r.Details["limit"], r.Details["running"] = c.MaxParallel, running
	return true, nil
}
