package api

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/schedule"
)

// Code says what kind of failure a [Problem] is. Codes are stable: clients, exit statuses and retries rest on them.
type Code string

// The codes.
const (
	CodeInvalid      Code = "invalid"
	CodeUnauthorized Code = "unauthorized"
	CodeForbidden    Code = "forbidden"
	CodeNotFound     Code = "not_found"
	CodeMethod       Code = "method_not_allowed"
	CodeConflict     Code = "conflict"
	CodeInProgress   Code = "in_progress"
	CodeTooLarge     Code = "too_large"
	CodeMediaType    Code = "unsupported_media_type"
	CodeImpossible   Code = "impossible"
	CodeMismatch     Code = "idempotency_mismatch"
	CodeLocked       Code = "locked"
	CodeTooMany      Code = "too_many_requests"
	CodeInternal     Code = "internal"
	CodeUnavailable  Code = "unavailable"
)

// failure is what a code means.
type failure struct {
	status  int
	retry   time.Duration // what Retry-After says; 0: nothing
	meaning string        // for the documentation
}

// failures is the one table from codes to HTTP.
var failures = map[Code]failure{
	CodeInvalid:      {400, 0, "The request breaks a rule; errors names the fields."},
	CodeUnauthorized: {401, 0, "No token, or one that is not known."},
	CodeForbidden:    {403, 0, "The token's role may not do this."},
	CodeNotFound:     {404, 0, "There is nothing at this path, or nothing of that name or id."},
	CodeMethod:       {405, 0, "The path exists, but not with this method; Allow lists those it has."},
	CodeConflict:     {409, 0, "What is there does not allow it: a task that is finished, a lease that is over."},
	CodeInProgress:   {409, time.Second, "The first request with this Idempotency-Key is still at work."},
	CodeTooLarge:     {413, 0, "A body over 1 MiB, or a single value over 256 KiB."},
	CodeMediaType:    {415, 0, "The body is not JSON in UTF-8."},
	CodeImpossible:   {422, 0, "Understood, but not possible."},
	CodeMismatch:     {422, 0, "The Idempotency-Key was used with another body."},
	CodeLocked:       {423, 0, "The stream is another producer's."},
	CodeTooMany:      {429, time.Second, "Too many requests; Retry-After says when to come back."},
	CodeInternal:     {500, 0, "A failure of the server; request_id finds it in the log."},
	CodeUnavailable:  {503, time.Second, "The store cannot be reached or is busy; nothing acknowledged is lost."},
}

// problemOf answers what a client may know of an error. What it does not recognise is [CodeInternal] and says nothing.
func problemOf(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	if e, ok := errors.AsType[*event.Error](err); ok {
		return refused(e)
	}
	switch {
	case errors.Is(err, journal.ErrIdempotencyMismatch):
		return problem(CodeMismatch, "this Idempotency-Key was used with another body").at(inKeyHeader)
	case errors.Is(err, journal.ErrTooLarge):
		return problem(CodeTooLarge, "this is too large for one append; send less at a time").at("body")
	case errors.Is(err, queue.ErrNoTask):
		return problem(CodeNotFound, "there is no task with this id")
	case errors.Is(err, queue.ErrNoLease):
		return problem(CodeNotFound, "this lease was never given")
	case errors.Is(err, queue.ErrFinished):
		return problem(CodeConflict, "the task is finished")
	case errors.Is(err, queue.ErrUnfinished):
		return problem(CodeConflict, "the task is not finished")
	case errors.Is(err, queue.ErrSucceeded):
		return problem(CodeConflict, "the task has succeeded")
	case errors.Is(err, queue.ErrStale):
		return problem(CodeConflict, "the lease is no longer valid; nothing was changed")
	case errors.Is(err, schedule.ErrNoSchedule):
		return problem(CodeNotFound, "there is no schedule of this name")
	case errors.Is(err, schedule.ErrRange):
		return problem(CodeImpossible, "%s", strings.TrimPrefix(err.Error(), schedule.ErrRange.Error()+": ")).at("body")
	case errors.Is(err, queue.ErrInvalid):
		return problem(CodeInvalid, "%s", strings.TrimPrefix(err.Error(), queue.ErrInvalid.Error()+": "))
	case errors.Is(err, journal.ErrUnavailable), errors.Is(err, journal.ErrClosed),
		errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return problem(CodeUnavailable, "the store cannot be reached or is busy; try again")
	case errors.Is(err, journal.ErrUnknownOutcome):
		return problem(CodeUnavailable, "whether this was done could not be established; try again with the same Idempotency-Key")
	}
	return problem(CodeInternal, "an unexpected failure; the log has it under the request id")
}

// refused answers what package event has found wrong, field by field.
func refused(e *event.Error) *Problem {
	code := CodeInvalid
	switch e.Reason {
	case event.TooLarge:
		code = CodeTooLarge
	case event.Unprocessable:
		code = CodeImpossible
	}
	p := problem(code, "%s", e.Error())
	for _, found := range e.Problems {
		p.Errors = append(p.Errors, FieldError(found))
	}
	return p
}
