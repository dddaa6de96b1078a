package simulation

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/notifier"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/task"
	"github.com/millrace/millrace/shared/worker"
)

// mostSweeps is how many sweeps may be needed to work off a backlog of tasks whose notifications were lost.
const mostSweeps = 2

// ears is a notifier that counts notifications while it is open and loses them otherwise.
type ears struct {
	mu      sync.Mutex
	open    bool
	notices int
}

// listen opens or closes the notifier, and returns how many notifications it has counted since the last call.
func (e *ears) listen(open bool) (heard int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	heard = e.notices
	e.open, e.notices = open, 0
	return heard
}

// Notify counts the notifications, or returns ErrUnavailable while the notifier is closed.
func (e *ears) Notify(_ context.Context, notices ...notifier.Notice) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.open {
		return notifier.ErrUnavailable
	}
	e.notices += len(notices)
	return nil
}

// Ping returns nil.
func (*ears) Ping(context.Context) error { return nil }

// Close does nothing.
func (*ears) Close() error { return nil }

// backlog enqueues tasks whose notifications are lost, beside what the run has left, with its rules in force. A sweep that notifies
// wakes one worker, and a worker that notifies wakes one more. After mostSweeps sweeps none of these tasks may wait.
func (r *engineRun) backlog() {
	if r.plan.backlog == 0 {
		return
	}
	a := r.actor("backlog", 1)
	for n := range r.plan.backlog {
		label := fmt.Sprintf("backlog-%d", n)
		answer, err := a.home.now().Enqueue(r.ctx, nil, queue.New{Dialect: task.Job, Job: "/single", Payload: []byte(`"` + label + `"`)})
		if err != nil {
			r.report("liveness", "a task cannot be enqueued when all is quiet: %v", err)
		}
		r.requests = append(r.requests, request{labels: []string{label}, outcome: Acknowledged, answer: answer})
	}
	for range mostSweeps {
		r.ears.listen(true)
		if _, err := a.home.now().Sweep(r.ctx); err != nil {
			r.report("liveness", "a sweep fails when all is quiet: %v", err)
		}
		for woken := r.ears.listen(false); woken > 0; {
			woken = a.wake()
		}
		time.Sleep(leaseLength)
	}
	for _, t := range r.ledger.unfinished() {
		if t.Job == "/single" {
			r.report("backlog", "task %s waits after %d sweeps, of %d tasks whose notices were lost", t.ID, mostSweeps, r.plan.backlog)
		}
	}
	r.count("backlogs")
}

// wake runs one invocation of the function that notifications trigger, and returns how many notifications it sends. Those that the
// engine sends meanwhile are lost, unless the time of the invocation is over: that is how a claim passes on what it has not come to.
func (a *actor) wake() (notified int) {
	r, own := a.run, &ears{open: true}
	e := r.homes[a.luck.IntN(len(r.homes))].now()
	runner := worker.NewRunner(worker.Options{
		Engine: e, Definitions: r.set, Notifier: own, Grace: 100 * time.Millisecond,
		Targets: worker.Targets{Go: worker.Functions{"f": func(context.Context, *worker.Attempt, *worker.Log) (json.RawMessage, error) {
			a.rest(leaseLength / 3)
			return nil, nil
		}}},
	})
	ctx, end := context.WithTimeout(r.ctx, r.plan.awake)
	defer end()
	r.ears.listen(true)
	ran, err := runner.RunBatch(ctx, queue.Claimer{Instance: a.name}, 1)
	passedOn := r.ears.listen(false)
	if err != nil && ctx.Err() == nil {
		r.report("liveness", "a worker cannot claim when all is quiet: %v", err)
	}
	if notified = own.listen(false); ctx.Err() != nil {
		notified += passedOn
	}
	r.note("%s: woken, ran %d, notified %d", a.name, ran, notified)
	return notified
}
