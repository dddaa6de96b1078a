package order

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/task"
)

// doing is what an order's item does not say.
type doing struct {
	now  int64
	task *task.Task // of the step under way; nil: it has just been added, or there is none
}

// Get returns an order as clients see it. The error is [ErrNoOrder] if there is none.
func (e *Engine) Get(ctx context.Context, chain, id string) (projection.OrderOverview, error) {
	o, _, err := e.read(ctx, chain+","+id)
	if err != nil {
		return projection.OrderOverview{}, err
	}
	d, _, err := e.stored(ctx, o)
	if err != nil {
		return projection.OrderOverview{}, err
	}
	shown := o.overview(d)
	if e.journal != nil && o.started(d) > 0 {
		err = e.toldStart(ctx, &shown)
	}
	return shown, err
}

// toldStart sets the order's start to the time that the journal tells, which is some microseconds after that of its first step's task: as
// it is in snapshots.
func (e *Engine) toldStart(ctx context.Context, o *projection.OrderOverview) error {
	part := journal.Part{Prefixes: []string{o.Path}, Match: func(key string) bool { return key == o.Path }}
	var damaged error
	_, err := e.journal.SnapshotOf(ctx, "OrderOverview", part, func(_ string, value []byte) {
		var told projection.OrderOverview
		if damaged = json.Unmarshal(value, &told); damaged == nil && !told.StartedAt.IsZero() {
			o.StartedAt = told.StartedAt
		}
	})
	return errors.Join(err, damaged)
}

// stored reads the task of an order's step.
func (e *Engine) stored(ctx context.Context, o *Order) (doing, queue.Stored, error) {
	d := doing{now: e.micro()}
	if o.Task == "" {
		return d, queue.Stored{}, nil
	}
	s, err := e.queue.Stored(ctx, o.Task)
	if err == nil && !s.Absent {
		d.task = &s.Task
	}
	return d, s, err
}

// overview returns the order as clients see it.
func (o *Order) overview(d doing) projection.OrderOverview {
	shown := projection.OrderOverview{
		TYPE: "OrderOverview", Path: o.Path(), NodeID: o.Node, State: o.state(d), Obstacles: []projection.Obstacle{},
		StartedAt: when(o.started(d)), Version: o.Version, Variables: jsontext.Value(o.variables()),
	}
	if o.Suspended {
		shown.Obstacles = append(shown.Obstacles, projection.Obstacle{Type: "Suspended"})
	}
	if shown.State.Type == projection.SetBack {
		shown.Obstacles = append(shown.Obstacles, projection.Obstacle{Type: "Setback", Until: when(o.At)})
	}
	if name, ok := waits[o.Waiting]; ok {
		shown.Obstacles = append(shown.Obstacles, projection.Obstacle{Type: name, Until: when(o.Until)})
	}
	return shown
}

// waits are the obstacles that waits show.
var waits = map[string]string{typed.ForEvent: "Wait", typed.ForTime: "Wait", forJoin: "Join", forPrompt: "Prompt"}

// started returns when the first step began.
func (o *Order) started(d doing) int64 {
	if o.Started == 0 && d.task != nil && d.task.Order != nil && d.task.Order.First {
		return d.task.Started
	}
	return o.Started
}

// state returns what the order is doing, by the first that applies.
func (o *Order) state(d doing) projection.ProcessingState {
	running := d.task != nil && d.task.State == task.Running
	switch {
	case o.Blacklisted:
		return projection.ProcessingState{Type: projection.Blacklisted}
	case running:
		return projection.ProcessingState{Type: projection.InTaskProcess, TaskID: string(d.task.ID)}
	case d.task != nil && d.task.Attempt > 0:
		return projection.ProcessingState{Type: projection.WaitingInTask, TaskID: string(d.task.ID)}
	case o.Waiting != "":
		return projection.ProcessingState{Type: projection.WaitingForResource}
	case o.SetBack:
		return o.until(d.now, projection.SetBack)
	case o.Idle, o.started(d) == 0 && o.Suspended:
		return projection.ProcessingState{Type: projection.NotPlanned}
	case o.started(d) == 0 && o.At > 0:
		return o.until(d.now, projection.Planned)
	default:
		return o.until(d.now, projection.Due)
	}
}

// until returns the state in which the order waits for its time; it is due since that has come.
func (o *Order) until(now int64, state string) projection.ProcessingState {
	if o.At <= now {
		state = projection.Due
	}
	return projection.ProcessingState{Type: state, At: when(o.At)}
}
