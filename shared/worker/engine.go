package worker

import (
	"context"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/task"
)

// Engine hands tasks out and takes back how they ended. [queue.Queue] is one and says what the methods promise.
type Engine interface {
	Claim(ctx context.Context, by queue.Claimer, max int) ([]queue.Lease, error)
	Heartbeat(ctx context.Context, token string, b queue.Beat) (queue.Alive, error)
	Complete(ctx context.Context, token string, r queue.Result) (task.State, error)
	CompleteAndClaim(ctx context.Context, token string, r queue.Result, by queue.Claimer, max int) (task.State, []queue.Lease, error)
	AppendLog(ctx context.Context, token string, lines []queue.Line) error

	// StopRequested tells of requests to stop that are made in this process, sooner than a heartbeat does.
	StopRequested(token string) (asked <-chan struct{}, done func())
}

// Definitions answer the set in force. It may be some seconds old.
type Definitions interface {
	Current(ctx context.Context) (*definition.Set, error)
}
