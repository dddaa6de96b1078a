package api

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/millrace/millrace/shared/clock"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/exchanges"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/schedule"
)

// Code says what kind of failure a [Problem] is. Codes are stable: clients, exit statuses and retries rest on them.
type Code string

// The codes. The table failures has the status and the meaning of each.
const (
	CodeInvalid      Code = "invalid"
	CodeUnauthorized Code = "unauthorized"
	CodeForbidden    Code = "forbidden"
	CodeNotFound     Code = "not_found"
	CodeMethod       Code = "method_not_allowed"
	CodeConflict     Code = "conflict"
	CodeInProgress   Code = "in_progress"
	CodeTorn         Code = "torn"
	CodeTooLarge     Code = "too_large"
	CodeMediaType    Code = "unsupported_media_type"
	CodeImpossible   Code = "impossible"
	CodeMismatch     Code = "idempotency_mismatch"
	CodeLocked       Code = "locked"
	CodeTooMany      Code = "too_many_requests"
	CodeInternal     Code = "internal"
	CodeUnavailable  Code = "unavailable"
)

// failure is what a code means over HTTP.
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
	CodeTorn:         {410, 0, "What was at this EventId is not kept any more."},
	CodeTooLarge:     {413, 0, "A body over 1 MiB, or a single value over 256 KiB."},
	CodeMediaType:    {415, 0, "The body is not JSON in UTF-8."},
	CodeImpossible:   {422, 0, "Understood, but not possible."},
	CodeMismatch:     {422, 0, "The Idempotency-Key was used with another body."},
	CodeLocked:       {423, 0, "The stream is another producer's."},
	CodeTooMany:      {429, time.Second, "Too many requests; Retry-After says when to come back."},
	CodeInternal:     {500, 0, "A failure of the server; request_id finds it in the log."},
	CodeUnavailable:  {503, time.Second, "The store cannot be reached or is busy; nothing acknowledged is lost."},
}

// Status returns the HTTP status of failures with this code.
func (c Code) Status() int { return failures[c].status }

// meanings are what clients are told of the errors of other packages. Where text is empty, it is the error's own.
var meanings = []struct {
	err  error
	code Code
	text string
	at   string // location
}{
	{journal.ErrIdempotencyMismatch, CodeMismatch, "this Idempotency-Key was used with another body", inKeyHeader},
	{journal.ErrTooLarge, CodeTooLarge, "this is too large for one append; send less at a time", "body"},
	{journal.ErrEventGone, CodeTorn, "this event is no longer kept", ""},
	{journal.ErrEvicted, CodeTorn, "", "query.at"},
	{journal.ErrBeyond, CodeImpossible, "", "query.at"},
	{journal.ErrNoEvent, CodeNotFound, "no event has this id", ""},
	{order.ErrTooLarge, CodeTooLarge, "variables have at most 64 KiB together", "body.variables"},
	{order.ErrInvalid, CodeInvalid, "", ""},
	{order.ErrNoChain, CodeNotFound, "there is no such job chain", ""},
	{order.ErrNoOrder, CodeNotFound, "there is no such order", ""},
	{order.ErrNoEndNode, CodeImpossible, "the job chain has no such node", "body.end_node"},
	{order.ErrNoVersion, CodeImpossible, "", "body.version"},
	{order.ErrNodeGone, CodeImpossible, "", "body.version"},
	{order.ErrNoNode, CodeImpossible, "", "body.node"},
	{order.ErrNothing, CodeImpossible, "", "body.filter"},
	{order.ErrNoBulk, CodeNotFound, "there is no such act, or it was done more than a week ago", ""},
	{order.ErrExists, CodeConflict, "the job chain has an order with this id", ""},
	{order.ErrState, CodeConflict, "", ""},
	{order.ErrRole, CodeForbidden, "", ""},
	{order.ErrNoAnswer, CodeImpossible, "", "body.answer"},
	{queue.ErrTooLarge, CodeTooLarge, "", "body"},
	{queue.ErrNoTask, CodeNotFound, "there is no task with this id", ""},
	{queue.ErrNoLease, CodeNotFound, "this lease was never given", ""},
	{queue.ErrForeign, CodeConflict, "another instance holds this lease", ""},
	{exchanges.ErrOld, CodeConflict, "a later exchange of the instance was made; nothing was changed", "body.seq"},
	{exchanges.ErrReplaced, CodeConflict, "the same exchange was asked for again, and goes on there", "body.seq"},
	{queue.ErrFinished, CodeConflict, "the task is finished", ""},
	{queue.ErrUnfinished, CodeConflict, "the task is not finished", ""},
	{queue.ErrSucceeded, CodeConflict, "the task has succeeded", ""},
	{queue.ErrStep, CodeConflict, "", ""},
	{queue.ErrStale, CodeConflict, "the lease is no longer valid; nothing was changed", ""},
	{schedule.ErrNoSchedule, CodeNotFound, "there is no schedule of this name", ""},
	{schedule.ErrRange, CodeImpossible, "", "body"},
	{queue.ErrInvalid, CodeInvalid, "", ""},
	{journal.ErrInvalid, CodeInvalid, "the store does not take this", ""},
	{journal.ErrUnavailable, CodeUnavailable, unavailableText, ""},
	{journal.ErrClosed, CodeUnavailable, unavailableText, ""},
	{context.DeadlineExceeded, CodeUnavailable, unavailableText, ""},
	{context.Canceled, CodeUnavailable, "the request was ended before this was done: its client has closed the connection, or the server stops; try again", ""},
	{journal.ErrUnknownOutcome, CodeUnavailable,
		"whether this was done could not be established; try again with the same Idempotency-Key", ""},
}

const unavailableText = "the store cannot be reached or is busy; try again"

// problemOf returns what a client may know of an error. One that it does not recognise is [CodeInternal] without details.
func problemOf(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	if e, ok := errors.AsType[*event.Error](err); ok {
		return refused(e)
	}
	if v, ok := errors.AsType[*order.VariableError](err); ok {
		return invalid("body.variables."+v.Name, "want a text, a number, a boolean, or a list of these")
	}
	if skew, ok := errors.AsType[*clock.Skew](err); ok {
		return problem(CodeUnavailable, "%v", skew)
	}
	for _, m := range meanings {
		if !errors.Is(err, m.err) {
			continue
		}
		text := m.text
		if text == "" {
			text = strings.TrimPrefix(err.Error(), m.err.Error()+": ")
		}
		p := problem(m.code, "%s", text)
		if m.at != "" {
			return p.at(m.at)
		}
		return p
	}
	return problem(CodeInternal, "an unexpected failure; the log has it under the request id")
}

// refused returns what package event has found wrong, field by field.
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
