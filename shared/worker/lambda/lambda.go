package lambda

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/millrace/millrace/shared/awsenv"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/worker"
)

// Target invokes the function that an attempt's target names, with the attempt as JSON, and waits for its response, which is
// the output. A function's own error is a failure. A throttled invocation uses up no attempt. The zero value is ready to use;
// the account is that of the standard AWS variables, read when the first task runs. It is a [worker.Target].
type Target struct {
	mu     sync.Mutex
	client *lambda.Client
}

var _ worker.Target = (*Target)(nil)

// Run invokes the function.
func (t *Target) Run(ctx context.Context, a *worker.Attempt, log *worker.Log) queue.Result {
	client, err := t.open(ctx)
	if err != nil {
		return failed(err.Error())
	}
	body, err := json.Marshal(a)
	if err != nil {
		return failed("the task cannot be written as JSON: " + err.Error())
	}
	answer, err := client.Invoke(ctx, &lambda.InvokeInput{
		FunctionName: aws.String(a.Target.Lambda.ARN), InvocationType: types.InvocationTypeRequestResponse, Payload: body,
	})
	if err != nil {
		return refused(err)
	}
	if answer.FunctionError != nil {
		return failed(functionError(*answer.FunctionError, answer.Payload))
	}
	result := queue.Result{Outcome: queue.OK, Output: output(answer.Payload, log)}
	if a.Order != nil {
		result.Variables = worker.Variables(answer.Payload)
	}
	return result
}

// open returns the client, which the first call makes; after a failure the next call tries again.
func (t *Target) open(ctx context.Context) (*lambda.Client, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.client != nil {
		return t.client, nil
	}
	config, err := awsenv.Load(ctx)
	if err != nil {
		return nil, fmt.Errorf("lambda: %w", err)
	}
	t.client = lambda.NewFromConfig(config, func(o *lambda.Options) {
		o.Retryer = aws.NopRetryer{}                                      // the engine counts attempts; a second request might run the function twice
		o.HTTPClient = awsenv.Client(awsenv.Transport(5*time.Second, 16)) // waits for a response as long as the attempt may take
	})
	return t.client, nil
}

// refused returns the result of a failed request.
func refused(err error) queue.Result {
	result := failed(err.Error())
	var throttled *types.TooManyRequestsException
	if !errors.As(err, &throttled) {
		return result
	}
	result.Outcome, result.RetryDelay = queue.Again, time.Second
	if throttled.RetryAfterSeconds != nil {
		seconds, err := strconv.ParseUint(*throttled.RetryAfterSeconds, 10, 64)
		if seconds > 0 && (err == nil || errors.Is(err, strconv.ErrRange)) {
			result.RetryDelay = time.Duration(min(seconds, maxDelay)) * time.Second
		}
	}
	return result
}

// maxDelay is how many seconds a throttled task waits at most, whatever the response says: a day, as for targets by HTTP.
const maxDelay = 24 * 60 * 60

// functionError returns the message of an error as runtimes report it.
func functionError(kind string, payload []byte) string {
	var said struct {
		Type    string `json:"errorType"`
		Message string `json:"errorMessage"`
	}
	if err := json.Unmarshal(payload, &said); err != nil || said.Message == "" {
		return "the function ended with an error (" + kind + ")"
	}
	if said.Type != "" {
		return said.Type + ": " + said.Message
	}
	return said.Message
}

// output returns what is kept of a response, see [worker.Output]. The response of a function that returns nothing is null.
func output(payload []byte, log *worker.Log) json.RawMessage {
	kept := worker.Output(payload, log)
	if string(kept) == "null" {
		return nil
	}
	return kept
}

func failed(message string) queue.Result {
	return queue.Result{Outcome: queue.Failed, Message: message}
}
