package worker

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/millrace/millrace/shared/queue"
)

// Function runs an attempt in this process and returns its output, JSON or nothing. An error has the outcome
// [queue.Thrown], unless it was made by [Fail] or [Reject]. A Function should return soon after ctx ends.
type Function func(ctx context.Context, a *Attempt, log *Log) (json.RawMessage, error)

// Functions maps the names that definitions use to Go functions. It is a [Target].
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

// Fail returns an error that makes the attempt fail, with err's text as the message. The next attempt, if any is left, starts
// after delay; 0 stands for the delay of the task's own.
func Fail(err error, delay time.Duration) error {
	return &verdictError{error: err, outcome: queue.Failed, delay: max(delay, 0)}
}

// Reject returns an error that rejects the task, which gets no further attempt, with err's text as the message.
func Reject(err error) error { return &verdictError{error: err, outcome: queue.Cancel} }

// verdictError is an error with an outcome.
type verdictError struct {
	error
	outcome queue.Outcome
	delay   time.Duration
}

// Unwrap returns the error that Fail or Reject was given.
func (e *verdictError) Unwrap() error { return e.error }
