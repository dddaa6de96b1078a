package worker

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/millrace/millrace/shared/queue"
)

// Function runs an attempt in this process and answers its output, JSON or nothing. An error is what the engine calls a
// thrown error; one made by [Fail] or [Reject] says more exactly what is meant. It should return soon after ctx ends.
type Function func(ctx context.Context, a *Attempt, log *Log) (json.RawMessage, error)

// Functions are the Go functions that tasks of this process can run, by the names that definitions call them. They are a
// [Target].
type Functions map[string]Function

// Run runs the function that the attempt's target names.
func (f Functions) Run(ctx context.Context, a *Attempt, log *Log) queue.Result {
	function := f[a.Target.Go]
	if function == nil {
		return failed("no Go function " + a.Target.Go + " is registered in this server")
	}
	output, err := function(ctx, a, log)
	var verdict *verdictError
	switch {
	case errors.As(err, &verdict):
		return queue.Result{Outcome: verdict.outcome, Message: err.Error(), RetryDelay: verdict.delay}
	case err != nil:
		return queue.Result{Outcome: queue.Thrown, Message: err.Error()}
	case len(output) > 0 && !json.Valid(output):
		return failed("the output of " + a.Target.Go + " is not JSON")
	}
	return queue.Result{Outcome: queue.OK, Output: output}
}

// Fail answers an error that says that the attempt failed, as err tells. The next one, if attempts are left, starts after
// delay; 0 is the task's own.
func Fail(err error, delay time.Duration) error {
	return &verdictError{error: err, outcome: queue.Failed, delay: max(delay, 0)}
}

// Reject answers an error that says that the task is not wanted again, as err tells.
func Reject(err error) error { return &verdictError{error: err, outcome: queue.Cancel} }

// verdictError is an error that says what becomes of the task.
type verdictError struct {
	error
	outcome queue.Outcome
	delay   time.Duration
}

func (e *verdictError) Unwrap() error { return e.error }
