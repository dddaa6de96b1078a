package worker

import (
	"context"
	"errors"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/queue"
)

// Later is the outcome of an attempt that goes on elsewhere: whoever was given its token keeps the lease alive and says how
// it ended. The worker lets go of it.
const Later queue.Outcome = "later"

// Why the context of a running attempt ends, as [context.Cause] tells. Another cause means that the worker shuts down.
var (
	// ErrStopped: somebody asked for the task to be stopped.
	ErrStopped = errors.New("worker: a stop was asked for")

	// ErrTimeout: the attempt has taken longer than its job allows.
	ErrTimeout = errors.New("worker: the attempt takes too long")

	// ErrLost: the lease is no longer valid. What the attempt answers will not be heard.
	ErrLost = errors.New("worker: the lease is lost")

	// ErrShutdown: the process ends. The task goes back to its queue and keeps its attempt.
	ErrShutdown = errors.New("worker: the worker shuts down")
)

// Target runs attempts. Run may be called concurrently; it answers how the attempt ended, soon after ctx ends at the
// latest. It may panic: that is the outcome [queue.Thrown].
type Target interface {
	Run(ctx context.Context, a *Attempt, log *Log) queue.Result
}

// Targets are what a process can run tasks on. Those left nil it cannot.
type Targets struct {
	Go      Target // such as [Functions]
	HTTP    Target // such as [HTTP]
	Lambda  Target // see package worker/lambda
	Command Target // such as [Command]; only where definitions come from the server's own configuration
}

// of answers what runs a declared target, and its name.
func (t Targets) of(declared definition.Target) (target Target, name string) {
	switch {
	case declared.Go != "":
		return t.Go, "Go function"
	case declared.HTTP != nil:
		return t.HTTP, "HTTP"
	case declared.Lambda != nil:
		return t.Lambda, "Lambda"
	default:
		return t.Command, "command"
	}
}

func failed(message string) queue.Result {
	return queue.Result{Outcome: queue.Failed, Message: message}
}
