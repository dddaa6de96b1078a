package worker

import (
	"context"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/tasklog"
	"github.com/millrace/millrace/shared/task"
)

// Engine grants leases on tasks and completes them. [queue.Queue] is one and documents the methods.
type Engine interface {
	// Claim returns what it has claimed even if ctx ends meanwhile.
	Claim(ctx context.Context, by queue.Claimer, max int) ([]queue.Lease, error)
	Heartbeat(ctx context.Context, token string, b queue.Beat) (queue.Alive, error)
	Complete(ctx context.Context, token string, r queue.Result) (task.State, error)
	CompleteAndClaim(ctx context.Context, token string, r queue.Result, by queue.Claimer, max int) (task.State, []queue.Lease, error)
	AppendLog(ctx context.Context, token string, lines []tasklog.Line) error

	// StopRequested returns a channel that is closed when a stop is asked for in this process, sooner than a heartbeat tells.
	StopRequested(token string) (asked <-chan struct{}, done func())
}

// Definitions returns the set in force, which may be some seconds old.
type Definitions interface {
	Current(ctx context.Context) (*definition.Set, error)
}
