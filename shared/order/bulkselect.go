package order

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue/view"
	"github.com/millrace/millrace/shared/task"
	"github.com/millrace/millrace/shared/task/failure"
)

// Portion is how much of what a filter selects is acted on, and how fast.
type Portion struct {
	Limit     int // so many at most, the first that are found; 0: all
	PerSecond int // so many at most in a second; 0: as many as can be
}

// of returns that much of what was selected.
func (p Portion) of(selected []string) []string {
	if p.Limit > 0 {
		return selected[:min(p.Limit, len(selected))]
	}
	return selected
}

// Filter selects orders: those for which all of it holds.
type Filter struct {
	Portion

	Paths    event.PathQuery // of chains, or of orders; the zero value selects none
	State    string          // the TYPE of their orderProcessingState, one of [States]; empty: any
	Node     string          // where they are; empty: anywhere
	Obstacle string          // the TYPE of one of their obstacles, one of [Obstacles]; empty: any, or none
}

// States are what orders may be doing, see [projection.ProcessingState].
var States = []string{
	projection.NotPlanned, projection.Planned, projection.Due, projection.WaitingInTask, projection.InTaskProcess,
	projection.SetBack, projection.WaitingForResource, projection.Blacklisted,
}

// Obstacles are what may keep orders from going on, see [projection.Obstacle].
var Obstacles = []string{"Suspended", "Setback", "Prompt", "Wait", "Join"}

// Count returns how many orders a filter selects now.
func (e *Engine) Count(ctx context.Context, f Filter) (int, error) {
	all, err := e.selected(ctx, f)
	return len(all), err
}

// ActOnAll begins an act on all orders that a filter selects at one moment; if once is not nil, once for all calls with the same key. The
// errors are [ErrNothing] if there are none, [journal.ErrIdempotencyMismatch], and those of [CheckVariables].
func (e *Engine) ActOnAll(ctx context.Context, once *journal.Idempotency, a Act, f Filter) (Bulk, error) {
	if err := CheckVariables(a.Variables); err != nil {
		return Bulk{}, err
	}
	b := &bulk{Bulk: Bulk{Kind: string(a.Kind), PerSecond: f.PerSecond}, Order: &a}
	return e.beginOnce(ctx, once, b, func() ([]string, error) { return e.selected(ctx, f) })
}

// selected returns the paths of the orders that a filter selects at one moment.
func (e *Engine) selected(ctx context.Context, f Filter) (paths []string, err error) {
	part := journal.Part{
		Prefixes: f.Paths.Prefixes(event.OrderEvent),
		Match:    func(key string) bool { return f.Paths.MatchKey(event.OrderEvent, event.Key{Path: key}) },
	}
	var damaged error
	now := e.now()
	_, err = e.journal.SnapshotOf(ctx, "OrderOverview", part, func(key string, value []byte) {
		is, err := f.holds(value, now)
		if err != nil {
			damaged = err
		} else if is {
			paths = append(paths, key)
		}
	})
	return f.of(paths), errors.Join(err, damaged)
}

// holds reports whether what is not about the path holds now for an order as snapshots show it.
func (f *Filter) holds(value []byte, now time.Time) (bool, error) {
	if f.State == "" && f.Node == "" && f.Obstacle == "" {
		return true, nil
	}
	var o projection.OrderOverview
	if err := json.Unmarshal(value, &o); err != nil {
		return false, fmt.Errorf("%w: %w", errDamaged, err)
	}
	o.AsOf(now)
	blocked := f.Obstacle == "" || slices.ContainsFunc(o.Obstacles, func(o projection.Obstacle) bool { return o.Type == f.Obstacle })
	return blocked && (f.State == "" || o.State.Type == f.State) && (f.Node == "" || o.NodeID == f.Node), nil
}

// JobFilter selects jobs of topics: those for which all of it holds.
type JobFilter struct {
	Portion

	Paths   event.PathQuery // of jobs, /topics/TOPIC; the zero value selects none
	Topic   string          // path of the topic's job, see [queue.TopicPath]; empty: any
	History bool            // finished ones; default: those that are not
	States  []task.State    // those in one of these; required
	Message string          // those whose message has the same [failure.Shape]; empty: any
}

// CountJobs returns how many jobs a filter selects.
func (e *Engine) CountJobs(ctx context.Context, f JobFilter) (int, error) {
	all, err := e.selectedJobs(ctx, f)
	return len(all), err
}

// ActOnJobs begins an act on all jobs that a filter selects; if once is not nil, once for all calls with the same key. The errors are
// [ErrNothing] if there are none, and [journal.ErrIdempotencyMismatch].
func (e *Engine) ActOnJobs(ctx context.Context, once *journal.Idempotency, a JobAct, f JobFilter) (Bulk, error) {
	b := &bulk{Bulk: Bulk{Kind: string(a), PerSecond: f.PerSecond}, Job: a, History: f.History}
	return e.beginOnce(ctx, once, b, func() ([]string, error) { return e.selectedJobs(ctx, f) })
}

// selectedJobs returns the ids of the jobs that a filter selects, page by page.
func (e *Engine) selectedJobs(ctx context.Context, f JobFilter) (ids []string, err error) {
	shape := ""
	if f.Message != "" {
		shape = failure.Shape(f.Message)
	}
	l := view.JobListing{History: f.History, Topic: f.Topic, States: f.States, Limit: jobPage, Match: func(t *task.Task) bool {
		return t.Dialect == task.Job && f.Paths.Match(t.Job) && (shape == "" || failure.Shape(t.Message) == shape)
	}}
	for {
		page, err := e.queue.Jobs(ctx, l)
		if err != nil && !errors.Is(err, view.ErrNotFoundYet) {
			return nil, err
		}
		for i := range page.Tasks {
			ids = append(ids, string(page.Tasks[i].ID))
		}
		if l.Cursor = page.Cursor; l.Cursor == "" || f.Limit > 0 && len(ids) >= f.Limit {
			return f.of(ids), nil
		}
	}
}

const jobPage = 1000
