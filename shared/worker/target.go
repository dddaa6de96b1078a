package worker

import (
	"context"
	"errors"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/queue"
)

// Later is the outcome of an attempt that goes on elsewhere: the holder of its token keeps the lease alive and completes it. The
// worker does nothing more for it.
const Later queue.Outcome = "later"

// Why the context of a running attempt ends, as [context.Cause] returns it. [context.DeadlineExceeded] means that the host's time
// is over, any other cause that the worker shuts down.
var (
	// ErrStopped is the cause if a stop of the task was asked for.
	ErrStopped = errors.New("worker: a stop was asked for")

	// ErrTimeout is the cause if the attempt has taken longer than its job allows.
	ErrTimeout = errors.New("worker: the attempt takes too long")

	// ErrLost is the cause if the lease is no longer valid. The attempt's result is not used.
	ErrLost = errors.New("worker: the lease is lost")

	// ErrShutdown is the cause if the process ends. The task goes back to its queue, and the attempt is not counted.
	ErrShutdown = errors.New("worker: the worker shuts down")
)

// Target runs attempts. Run may be called concurrently; it returns how the attempt ended, soon after ctx ends at the latest. A
// panic is the outcome [queue.Thrown].
type Target interface {
	Run(ctx context.Context, a *Attempt, log *Log) queue.Result
}

// Targets are the kinds of targets that a process can run tasks on. A task whose kind is nil fails.
type Targets struct {
	Go      Target // registered Go functions, such as [Functions]
	HTTP    Target // addresses, such as [HTTP]
	Lambda  Target // Lambda functions, see package worker/lambda
	Command Target // programs, such as [Command]; only if definitions come from the server's own configuration
}

// of returns the Target that runs a declared target, nil if there is none, and the name of its kind.
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
