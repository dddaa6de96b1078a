package view

import (
	"context"
	"fmt"
	"slices"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// Runner is an instance that may be given tasks.
type Runner struct {
	Instance string   // the name that claimers give
	Jobs     []string // patterns of the jobs that it runs
	Capacity int      // the most tasks that it runs at once; 0 or less: no limit
}

func (r *Runner) runs(job string) bool {
	return slices.ContainsFunc(r.Jobs, func(pattern string) bool { return definition.Match(pattern, job) })
}

// What one question looks at, at most.
const (
	lookBehind = 1000 // entries of a queue that come first
	lookLines  = 100  // lines of a queue
	lookFull   = 100  // instances that run a job
)

// waiting is a task that may start, as far as rules and limits go.
type waiting struct {
	*task.Task
	queue definition.Queue
	line  layout.Line
	all   []Runner // the instances
	own   []Runner // those of them that run its job
}

// whyInLine sets the reason of a task that may start: nobody runs its job, all who do are at work, or others come first.
func (v *Tasks) whyInLine(ctx context.Context, t *task.Task, c definition.Queue, l layout.Line, r *Reason) (err error) {
	w := &waiting{Task: t, queue: c, line: l}
	if l.ForInstances() || c.Type == definition.Ordered {
		if w.all, err = v.o.Runners(ctx); err != nil {
			return err
		}
	}
	for i := range w.all {
		if w.all[i].runs(t.Job) {
			w.own = append(w.own, w.all[i])
		}
	}
	if l.ForInstances() && len(w.own) == 0 {
		r.Code, r.Reason = ReasonUnassigned, fmt.Sprintf("It waits for an instance that runs %s.", t.Job)
		r.Details["job"] = t.Job
		return nil
	}
	steps := []func(context.Context, *waiting, *Reason) error{v.whyFull, v.whyBehind}
	if c.Type == definition.Ordered {
		steps = []func(context.Context, *waiting, *Reason) error{v.whyOrdered, v.whyFull}
	}
	for _, step := range steps {
		if err := step(ctx, w, r); err != nil || r.Code != "" {
			return err
		}
	}
	r.State, r.Code = task.Ready, ReasonNext
	r.Reason = fmt.Sprintf("It is the next of the queue %s and starts when a worker is free.", t.Queue)
	return nil
}

// whyFull sets the reason if all instances that run the job are at their capacity.
func (v *Tasks) whyFull(ctx context.Context, w *waiting, r *Reason) error {
	if !w.line.ForInstances() || len(w.own) > lookFull {
		return nil
	}
	capacity := 0
	for i := range w.own {
		taken, err := v.slotsTaken(ctx, layout.InstanceLimit(w.own[i].Instance))
		if most := w.own[i].Capacity; err != nil || most <= 0 || taken < most {
			return err
		}
		capacity += w.own[i].Capacity
	}
	r.Code, r.Reason = ReasonLimitInstance, fmt.Sprintf("The instance that runs %s has reached its capacity: %d at once.", w.Job, capacity)
	if n := len(w.own); n > 1 {
		r.Reason = fmt.Sprintf("The %d instances that run %s have reached their capacity: %d at once together.", n, w.Job, capacity)
	}
	r.Details["job"], r.Details["instances"], r.Details["limit"] = w.Job, len(w.own), capacity
	return nil
}

// whyBehind sets the reason if other tasks come first.
func (v *Tasks) whyBehind(ctx context.Context, w *waiting, r *Reason) error {
	ahead, err := v.ahead(ctx, w)
	if n := len(ahead); n > 0 {
		r.State, r.Code, r.Reason = task.Ready, ReasonBehind, fmt.Sprintf("In the queue %s %s first.", w.Queue, come(n))
		r.Details["ahead"] = n
	}
	return err
}

// whyOrdered sets the reason if an older task of an ordered queue goes first.
func (v *Tasks) whyOrdered(ctx context.Context, w *waiting, r *Reason) error {
	running, err := v.slotsTaken(ctx, layout.QueueLimit(w.queue.Name))
	if err != nil {
		return err
	}
	if running > 0 {
		r.Code, r.Reason = ReasonOrdered, fmt.Sprintf("The queue %s is ordered, and an older one runs.", w.queue.Name)
		return nil
	}
	ahead, err := v.ahead(ctx, w)
	if n := len(ahead); n > 0 {
		r.Code, r.Reason = ReasonOrdered, fmt.Sprintf("The queue %s is ordered, and %s first.", w.queue.Name, come(n))
		r.Details["ahead"], r.Details["first"] = n, slices.MinFunc(ahead, layout.ByRank).UUID
	}
	return err
}

// ahead returns entries that come before the task, lookBehind at most.
func (v *Tasks) ahead(ctx context.Context, w *waiting) (ahead []layout.Place, err error) {
	lines, err := v.rivals(ctx, w)
	if err != nil {
		return nil, err
	}
	rank := w.rank()
	for _, l := range lines[:min(len(lines), lookLines)] {
		found, err := v.entries(ctx, l, rank, lookBehind-len(ahead))
		if err != nil {
			return nil, err
		}
		if at := slices.IndexFunc(found, func(p layout.Place) bool { return p.UUID == w.ID.UUID() }); at >= 0 {
			rank, found = found[at].At.Sort, found[:at]
		}
		if ahead = append(ahead, found...); len(ahead) >= lookBehind {
			return ahead[:lookBehind], nil
		}
	}
	return ahead, nil
}

// rank returns the rank of the task; "" if its turn, which only its entry tells, decides.
func (w *waiting) rank() string {
	switch w.queue.Type {
	case definition.Ordered:
		return w.ID.UUID()
	case definition.RoundRobin:
		return ""
	default:
		return layout.ByPriority(w.Priority, w.ID.UUID())
	}
}

// rivals returns the lines whose tasks may come first, that of the task itself before the others: in an ordered queue all from which
// somebody takes, otherwise those from which somebody takes who runs the task's job.
func (v *Tasks) rivals(ctx context.Context, w *waiting) ([]layout.Line, error) {
	rivals, takers := []layout.Line{w.line}, w.own
	ordered := w.queue.Type == definition.Ordered
	if ordered {
		takers = w.all
	} else if !w.line.ForInstances() {
		return rivals, nil
	}
	all, err := v.o.Lines(ctx, w.queue.Name)
	for _, l := range all {
		served := ordered
		if l.ForInstances() {
			served = slices.ContainsFunc(takers, func(r Runner) bool { return r.runs(l.Job) })
		}
		if served && l != w.line {
			rivals = append(rivals, l)
		}
	}
	return rivals, err
}

// entries returns the first entries of a line before a rank; "" is no bound.
func (v *Tasks) entries(ctx context.Context, l layout.Line, rank string, limit int) ([]layout.Place, error) {
	parts, err := layout.PartsOf(ctx, v.o.Store, l)
	if err != nil {
		return nil, err
	}
	found, _, err := layout.PlacesIn(ctx, v.o.Store, parts, store.Range{Table: store.Work, To: rank, Limit: limit, Eventual: true})
	return found, err
}

func come(n int) string {
	switch {
	case n == 1:
		return "1 other comes"
	case n >= lookBehind:
		return fmt.Sprintf("%d others or more come", n)
	default:
		return fmt.Sprintf("%d others come", n)
	}
}
