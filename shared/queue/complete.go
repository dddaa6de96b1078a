package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/notifier"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/queue/tasklog"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// MaxMessage is how many bytes of a result's message are kept at most; a longer one is cut and ends in "…".
const MaxMessage = 2000

// Complete ends an attempt, and returns the task's state afterwards. The error is [ErrStale] or [ErrNoLease] if the token is
// not valid; nothing is changed then.
func (q *Queue) Complete(ctx context.Context, token string, r Result) (task.State, error) {
	e, err := q.ending(ctx, token, r)
	if err != nil {
		return "", err
	}
	return e.ended(ctx, q.write(ctx, e)[0])
}

// endUnlessHeard ends an attempt whose lease has expired. A lease that has not, by a heartbeat meanwhile, is left as it is, and
// expires is when it will, in microseconds since 1970; otherwise 0.
func (q *Queue) endUnlessHeard(ctx context.Context, token string, r Result) (expires int64, err error) {
	e, err := q.ending(ctx, token, r)
	if err != nil {
		return 0, err
	}
	e.unlessHeard = true
	if state, err := e.ended(ctx, q.write(ctx, e)[0]); err != nil || state != task.Running {
		return 0, err
	}
	return e.held.Expires, nil
}

// ending is one attempt's end.
type ending struct {
	q      *Queue
	set    *definition.Set
	token  string
	result Result

	unlessHeard bool   // a lease that has not expired is left as it is
	by          string // the instance that must hold the lease; "": whoever has the token

	held  layout.Held
	task  task.Task // afterwards
	step  task.Step
	place *layout.Place // the entry of a task that goes on; nil if it is finished
	gone  bool          // the task leaves no history
	item  []store.Op    // operations on the task, without the entry's
	more  *following    // of an order's step; nil for other tasks
}

func (q *Queue) ending(ctx context.Context, token string, r Result) (*ending, error) {
	switch r.Outcome {
	case OK, Failed, Cancel, Thrown, Again, typed.Lost:
	default:
		return nil, fmt.Errorf("%w: result %q, want ok, failed or cancel", ErrInvalid, r.Outcome)
	}
	if r.RetryDelay < 0 {
		return nil, fmt.Errorf("%w: retry_delay: it is negative", ErrInvalid)
	}
	var err error
	if r.Output, err = outputOf(r.Output); err != nil {
		return nil, err
	}
	set, err := q.definitions.Current(ctx)
	if err != nil {
		return nil, err
	}
	return &ending{q: q, set: set, token: token, result: r}, nil
}

// ended returns the task's state after a write that has ended with err.
func (e *ending) ended(ctx context.Context, err error) (task.State, error) {
	if err == nil || errors.Is(err, ErrStale) || errors.Is(err, ErrNoLease) {
		e.q.leases.drop(e.token)
	}
	if err == nil && e.result.Outcome != typed.Lost {
		e.q.heard(ctx, e.held.Instance)
	}
	if errors.Is(err, errNothing) {
		return task.Running, nil
	}
	if err != nil {
		e.q.doubtIf(err)
		return "", err
	}
	e.announce(ctx)
	return e.task.State, nil
}

func (e *ending) bounds() (ops, bytes int) {
	ops = 2 + len(e.held.Slots) // the lease and the task
	if e.result.Outcome != OK || layout.OfTopic(&e.task) && !e.isOne() {
		ops++ // its entry, its history, or its payload
	}
	if e.unlessHeard {
		ops++ // the line of its log that says why
	}
	if e.task.Unique != "" {
		ops++
	}
	for i := range e.item {
		bytes += len(e.item[i].Item.Value)
	}
	if e.place != nil {
		bytes *= 2 // its entry says less than the task does
	}
	moreOps, moreBytes := e.more.bounds()
	return ops + moreOps, bytes + 1000 + moreBytes
}

// isOne reports whether the end is one operation on the task for certain, however often it is prepared.
func (e *ending) isOne() bool { return e.gone && e.task.Unique == "" && e.task.Apart == 0 }

// private returns true: only its worker changes a task that runs.
func (e *ending) private() bool { return true }

// touches names the task, which a claim that has not seen its start may have picked too, and its unique key, which an enqueue may
// ask for.
func (e *ending) touches() []string {
	uuid, _, _ := strings.Cut(e.token, ".")
	return e.more.touches(&e.task, withUnique(&e.task, uuid))
}

func (e *ending) prepare(ctx context.Context, lost *store.Conflict) (_ journal.Change, err error) {
	if err := e.load(ctx, lost); err != nil {
		return journal.Change{}, err
	}
	if e.by != "" && e.held.Instance != e.by {
		return journal.Change{}, ErrForeign
	}
	if err := e.mayGoByClock(ctx); err != nil {
		return journal.Change{}, err
	}
	now := e.q.micro()
	if e.unlessHeard && e.held.Expires > now {
		return journal.Change{}, errNothing // a heartbeat came first
	}
	e.judgeTime()
	e.step = e.decide()
	e.task = e.held.Task
	e.apply(now)
	events := []event.Event{ended(&e.task, e.result.Outcome)}
	e.place = nil
	e.gone = layout.LeavesNothing(e.set, &e.task)
	if e.task.State.Final() {
		end := closed(&e.task)
		if e.step == task.Stop {
			end.By = e.held.StopBy
		}
		events = append(events, end)
	} else if err := e.goOn(ctx, now); err != nil {
		return journal.Change{}, err
	}
	e.item = e.taskOps()
	events = causedAt(e.held.TaskVersion, events...)
	if e.task.Order != nil && e.task.State.Final() {
		if e.more, events, err = e.q.stepEnded(ctx, &e.task, e.result, lost, events); err != nil {
			return journal.Change{}, err
		}
	}
	return journal.Change{Events: events, Ops: e.ops}, nil
}

// load reads the lease, or takes what this process keeps of it.
func (e *ending) load(ctx context.Context, lost *store.Conflict) (err error) {
	if held, kept := e.q.leases.of(e.token); kept && lost == nil {
		e.held = held
		return nil
	}
	e.held, err = layout.LoadLease(ctx, e.q.store, e.token)
	return err
}

// mayGoByClock returns nil if the clock is known well enough for this end. One that rests on the time has its own look: the clock may have
// jumped since the sweep began, and whoever holds the lease goes by another.
func (e *ending) mayGoByClock(ctx context.Context) error {
	if e.unlessHeard {
		return e.q.mayDecide(ctx)
	}
	return e.q.compareClock(ctx)
}

// judgeTime makes a failure of the result cancel of a worker that had to stop at the timeout: nobody else wanted the task to end.
func (e *ending) judgeTime() {
	r, l := &e.result, &e.held.Lease
	if r.Outcome != Cancel || l.Stop || l.Allowed == 0 {
		return
	}
	said := r.Message
	if r.Outcome, r.Message = Failed, tookTooLong(l); said != "" {
		r.Message += ": " + said
	}
}

// decide returns the step that the result means for the task.
func (e *ending) decide() task.Step {
	t, outcome := &e.held.Task, e.result.Outcome
	switch {
	case outcome == OK:
		return task.Succeed
	case e.held.Stop:
		return task.Stop
	case outcome == Cancel, outcome == Thrown && t.Thrown == task.ThrownRejects:
		return task.Reject
	case (outcome == Again || t.AttemptsLeft()) && !t.TooLate(e.q.micro()+e.delay().Microseconds()):
		return task.Retry
	default:
		return task.Fail
	}
}

// apply changes the task.
func (e *ending) apply(now int64) {
	t, r := &e.task, &e.result
	t.State, _ = t.State.After(e.step) // it is running
	t.Message, t.Code = cut(r.Message), r.Code
	if e.step == task.Succeed {
		t.Output = r.Output
	}
	if e.step != task.Retry {
		t.Finished = now
		return
	}
	if r.Outcome == Again {
		t.Attempt--
		t.PutOff = cmp.Or(t.PutOff, now)
	} else {
		t.PutOff = 0
	}
	delay := e.delay()
	if t.NotBefore = now + delay.Microseconds(); delay < time.Microsecond {
		t.State, _ = t.State.After(task.Release)
	}
}

// delay returns the pause before another attempt.
func (e *ending) delay() time.Duration {
	if e.result.RetryDelay > 0 {
		return e.result.RetryDelay
	}
	return e.held.Task.RetryDelay
}

func cut(message string) string {
	message = strings.ToValidUTF8(message, "\uFFFD")
	if len(message) <= MaxMessage {
		return message
	}
	return strings.ToValidUTF8(message[:MaxMessage-3], "") + "…"
}

// goOn makes the entry of a task that is not finished: due if it waits for a time, otherwise, and in an ordered queue always, ready.
func (e *ending) goOn(ctx context.Context, now int64) error {
	c := e.set.QueueOf(e.task.Queue)
	p := &layout.Place{Entry: layout.EntryOf(&e.task, layout.ParseLine(e.held.Line))}
	e.place = p
	p.Settle(e.set)
	if e.task.NotBefore > now && c.Type != definition.Ordered {
		p.At = layout.DueKey(e.task.NotBefore, p.UUID)
		return nil
	}
	p.NotBefore = e.task.NotBefore
	var err error
	p.At, err = e.q.readyKey(ctx, c, p.Entry)
	return err
}

func (e *ending) ops(r journal.Receipt) []store.Op {
	ops := append(e.held.GiveBack(e.token, e.step != task.Succeed), e.item...)
	if e.place != nil {
		ops = append(ops, e.place.PutFor(r))
	}
	return append(ops, e.more.ops(r)...)
}

func (e *ending) taskOps() []store.Op {
	cond := store.VersionIs(e.held.TaskVersion)
	if e.place == nil {
		ops := layout.Conclude(&e.task, e.gone, cond)
		if e.unlessHeard { // no worker tells why
			line := tasklog.Line{Level: "error", Message: e.task.Message}
			ops = append(ops, tasklog.End(e.held.UUID, e.task.Attempt, line, e.q.now()))
		}
		return ops
	}
	return []store.Op{store.Put(store.Item{Key: layout.TaskKey(e.held.UUID), Value: layout.Encode(&e.task)}, cond)}
}

// announce notifies claimers of a task that goes on and of the slots that are free now, and removes the log of a task that is
// gone.
func (e *ending) announce(ctx context.Context) {
	if e.place != nil {
		e.q.announce(ctx, []*layout.Place{e.place})
		if e.place.NotBefore > 0 {
			e.q.notify(ctx, []notifier.Notice{{Queue: e.place.Line().String(), At: time.UnixMicro(e.place.NotBefore)}})
		}
	}
	if e.gone && e.held.Logged > 0 {
		if err := tasklog.Drop(ctx, e.q.store, e.held.UUID); err != nil {
			e.q.log.Warn("the log of a task that is gone is left", "task_id", e.task.ID, "error", err)
		}
	}
	e.more.announce(ctx)
	e.q.slotsFree(ctx, &e.held)
}

// slotsFree releases held entries, or notifies claimers, for each slot that a lease has given back.
func (q *Queue) slotsFree(ctx context.Context, h *layout.Held) {
	q.limits.GaveBack(h.Slots)
	for _, slot := range h.Slots {
		if key, ok := strings.CutPrefix(slot.Limit, layout.KeyLimit("")); ok {
			if err := q.freed(ctx, key); err != nil {
				q.log.Warn("tasks that wait for a limit are left to the sweep", "error", err)
			}
		} else if instance, ok := strings.CutPrefix(slot.Limit, layout.InstanceLimit("")); ok {
			q.waiters.empty(instance)
		} else {
			q.notify(ctx, q.noticesFor(ctx, layout.ParseLine(h.Line)))
		}
	}
}

// noticesFor returns a notification for each line of the same queue: the slot is free for whichever has the next task.
func (q *Queue) noticesFor(ctx context.Context, l layout.Line) []notifier.Notice {
	notices := []notifier.Notice{l.Notice()}
	all, err := q.known.Lines(ctx)
	if err != nil {
		return notices // the sweep notifies of the others
	}
	for _, other := range all {
		if other != l && other.Queue == l.Queue {
			notices = append(notices, other.Notice())
		}
	}
	return notices
}

// ended returns the event of an attempt's end.
func ended(t *task.Task, outcome Outcome) event.Event {
	e := typed.TaskEnded{Outcome: outcome, ReturnCode: t.Code}
	if !t.State.Final() {
		e.RetryAt = max(t.NotBefore, 1)
	}
	return e.Event(keyOf(t))
}

// closed returns the event of a task that is finished.
func closed(t *task.Task) event.Event { return typed.TaskClosed{State: t.State}.Event(keyOf(t)) }
