package queue_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/rule"
	"github.com/millrace/millrace/shared/queue/tasklog"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/faulty"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/task"
)

// day calls each operation of an engine once, and reports what failed.
type day struct {
	*queue.Queue
	ctx    context.Context
	failed func(doing string, err error)
}

// must notes an error.
func must[T any](d *day, doing string) func(T, error) T {
	return func(result T, err error) T {
		if err != nil {
			d.failed(doing, err)
		}
		return result
	}
}

func (d *day) pass() {
	far := queue.Claimer{Instance: "w/1", Name: "w", Capacity: 2, Jobs: []string{"/topics/**"}}
	here := queue.Claimer{Instance: "i"}
	added := func(doing string, once *queue.Once, news ...queue.New) {
		must[queue.Enqueued](d, doing)(d.Enqueue(d.ctx, once, news...))
	}
	claim := func(doing string, by queue.Claimer) []queue.Lease {
		return must[[]queue.Lease](d, doing)(d.Claim(d.ctx, by, 2))
	}
	added("enqueue", &queue.Once{Scope: "s", Key: "k"},
		queue.New{Dialect: task.Job, Job: "/plain", Unique: "u", Attempts: 3},
		queue.New{Dialect: task.Job, Job: "/plain", NotBefore: time.Now().Add(time.Minute)},
		queue.New{Dialect: task.Job, Job: "/strict"}, queue.New{Dialect: task.Job, Job: "/few"})
	for range 3 {
		added("enqueue for a key", nil, queue.New{Dialect: task.Job, Job: "/plain", Concurrency: &task.Concurrency{Key: "k", Limit: 1}})
		added("enqueue in turns", nil, queue.New{Dialect: task.Job, Job: "/fair/a"})
	}
	added("enqueue for an instance", nil, queue.New{Dialect: task.Job, Job: "/topics/a", Prefer: "w"})
	if err := d.SetRule(d.ctx, "/few", rule.Pause, true); err != nil {
		d.failed("set a rule", err)
	}
	for _, l := range append(claim("claim", here), claim("claim as an instance", far)...) {
		must[queue.Alive](d, "beat")(d.Heartbeat(d.ctx, l.Token, queue.Beat{Lines: []tasklog.Line{{Message: "m"}}}))
		state, next, err := d.CompleteAndClaim(d.ctx, l.Token, queue.Result{Outcome: queue.Failed}, here, 1)
		must[task.State](d, "complete and claim")(state, err)
		for _, l := range next {
			must[task.State](d, "complete")(d.Complete(d.ctx, l.Token, queue.Result{Outcome: queue.OK}))
		}
	}
	time.Sleep(2 * time.Minute)
	must[queue.Swept](d, "sweep")(d.Sweep(d.ctx))
	if err := d.SetRule(d.ctx, "/few", rule.Pause, false); err != nil {
		d.failed("lift a rule", err)
	}
	for leases := claim("claim", here); len(leases) > 0; leases = claim("claim", here) {
		for _, l := range leases {
			must[task.State](d, "complete")(d.Complete(d.ctx, l.Token, queue.Result{Outcome: queue.OK}))
		}
	}
	stopped := must[queue.Enqueued](d, "enqueue")(d.Enqueue(d.ctx, nil, queue.New{Dialect: task.Job, Job: "/plain"}))
	for _, a := range stopped.Tasks {
		must[bool](d, "stop")(d.Stop(d.ctx, a.Task.ID))
	}
	claim("claim", here)
	time.Sleep(time.Hour)
	must[queue.Swept](d, "sweep")(d.Sweep(d.ctx))
}

// No operation fails, whichever call the store refuses because it is throttled or another transaction is under way.
func TestNothingFailsForOneBusyCall(t *testing.T) {
	t.Parallel()
	eitherWay(t, func(t *testing.T, alone bool) {
		calls := 1
		defer func() { t.Logf("%d calls", calls) }()
		for n := 1; n <= calls; n++ {
			synctest.Test(t, func(t *testing.T) {
				service := faulty.NewService(memory.New(memory.Options{}), faulty.Faults{BusyAt: n}, nil)
				line := service.Process("p")
				var s store.Store = line
				if alone {
					s = owned{line}
				}
				j := journal.Open(s, journal.Options{Folds: projection.Folds()})
				defer func() { _ = j.Close() }()
				d := &day{ctx: t.Context(), failed: func(doing string, err error) {
					if errors.Is(err, store.ErrBusy) {
						t.Errorf("call %d is busy: %s: %v", n, doing, err)
					} else {
						t.Errorf("%s: %v", doing, err)
					}
				}}
				d.Queue = queue.Open(queue.Options{Store: s, Journal: j, Definitions: fixed{ways()}, Instances: func(context.Context) ([]queue.Claimer, error) {
					return []queue.Claimer{{Instance: "w/1", Name: "w", Capacity: 2, Jobs: []string{"/topics/**"}}}, nil
				}})
				d.pass()
				calls = line.Calls()
			})
			if t.Failed() {
				return
			}
		}
	})
}

// owned is a store that one process has to itself.
type owned struct{ store.Store }

// Exclusive returns true.
func (owned) Exclusive() bool { return true }
