package dynamo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/millrace/millrace/shared/store"
)

// readFailure returns the port's error for a failed request that is harmless to repeat. Its outcome does not matter, so
// every unknown error is [store.ErrUnavailable].
func readFailure(ctx context.Context, operation string, tables []string, err error) error {
	verdict := verdict(err)
	switch {
	case verdict != nil:
	case ctx.Err() != nil:
		return fmt.Errorf("dynamo: %s: %w", operation, ctx.Err())
	default:
		verdict = store.ErrUnavailable
	}
	return failure(operation, tables, verdict, err)
}

// writeFailure returns the port's error for a failed request that may change something. Only a known response, or the
// certainty that nothing was sent, decides the outcome; all else is [store.ErrUnknown], which does not wrap the context's
// error: that would say that nothing was sent.
func writeFailure(ctx context.Context, operation string, tables []string, err error, d *departure) error {
	verdict := verdict(err)
	switch {
	case verdict != nil:
	case d.stayed() && ctx.Err() != nil:
		return fmt.Errorf("dynamo: %s: %w", operation, ctx.Err())
	case d.stayed():
		verdict = store.ErrUnavailable
	default:
		verdict = store.ErrUnknown
	}
	return failure(operation, tables, verdict, err)
}

func failure(operation string, tables []string, verdict, err error) error {
	where := strings.Join(tables, ", ")
	if missing := (*types.ResourceNotFoundException)(nil); errors.As(err, &missing) {
		return fmt.Errorf("dynamo: %s: %w: no table %s in this region and account; deploy template.yaml, "+
			"or, where data may be lost, run millrace tables", operation, verdict, where)
	}
	if unsupported(err) {
		return fmt.Errorf("dynamo: %s on %s: %w: this server does not have %s, which DynamoDB, DynamoDB Local and LocalStack do: %s",
			operation, where, verdict, operation, err.Error())
	}
	return fmt.Errorf("dynamo: %s on %s: %w: %s", operation, where, verdict, err.Error())
}

// unsupported reports whether a server that speaks DynamoDB's API has only part of it.
func unsupported(err error) bool {
	var answer smithy.APIError
	return errors.As(err, &answer) && answer.ErrorCode() == "UnknownOperationException"
}

// verdict returns the port's error for DynamoDB's response; nil if there was none or it decides nothing.
func verdict(err error) error {
	if errors.Is(err, store.ErrTooLate) {
		return store.ErrTooLate
	}
	var answer smithy.APIError
	if errors.As(err, &answer) {
		if v, known := verdicts[answer.ErrorCode()]; known {
			return v
		}
	}
	var response interface{ HTTPStatusCode() int }
	if errors.As(err, &response) {
		return statusVerdict(response.HTTPStatusCode())
	}
	return nil
}

// verdicts are the port's errors by DynamoDB's error codes. The value nil means that the outcome is unknown.
//
// TransactionInProgressException is one of those: it is about an earlier request with the same token, perhaps this very
// one delivered twice. So is an internal error: "the request may or may not have succeeded" (Error handling with
// DynamoDB, Amazon DynamoDB Developer Guide).
var verdicts = map[string]error{
	"ProvisionedThroughputExceededException": store.ErrBusy,
	"ThrottlingException":                    store.ErrBusy,
	"ThrottlingError":                        store.ErrBusy,
	"RequestLimitExceeded":                   store.ErrBusy,
	"LimitExceededException":                 store.ErrBusy,
	"TransactionConflictException":           store.ErrBusy,
	"TransactionConflict":                    store.ErrBusy,
	"ProvisionedThroughputExceeded":          store.ErrBusy,
	"ReplicatedWriteConflictException":       store.ErrBusy,

	"ValidationException":                      store.ErrInvalid,
	"ValidationError":                          store.ErrInvalid,
	"ItemCollectionSizeLimitExceededException": store.ErrInvalid,
	"ItemCollectionSizeLimitExceeded":          store.ErrInvalid,
	"IdempotentParameterMismatchException":     store.ErrInvalid,

	"AccessDeniedException": store.ErrDenied,

	"TransactionInProgressException": nil,
	"InternalServerError":            nil,
	"InternalFailure":                nil,
	"ServiceUnavailable":             nil,
	"RequestTimeout":                 nil,
	"RequestTimeoutException":        nil,
}

// statusVerdict returns the port's error for an HTTP status alone: credentials, permissions and missing tables are refusals
// (4xx), after which nothing happens; nil, for all others, means that the outcome is unknown.
func statusVerdict(status int) error {
	switch {
	case status == http.StatusRequestTimeout:
		return nil
	case status == http.StatusRequestEntityTooLarge:
		return store.ErrInvalid
	case status == http.StatusTooManyRequests:
		return store.ErrBusy
	case status >= 400 && status < 500:
		return store.ErrUnavailable
	default:
		return nil
	}
}
