package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/alecthomas/kong"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/shared/config"
	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/service"
)

// The exit statuses.
const (
	statusOK         = 0
	statusFailed     = 1
	statusUsage      = 2
	statusNotFound   = 3
	statusConflict   = 4
	statusNotAllowed = 5
)

// usageError is a mistake in what was asked for, found before anything was done.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func misused(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// statusOf returns the exit status of an error; it is the one table for that.
func statusOf(err error) int {
	var parse *kong.ParseError
	var usage usageError
	var mistake *config.Mistake
	if errors.As(err, &parse) || errors.As(err, &usage) || errors.As(err, &mistake) {
		return statusUsage
	}
	var missing missingError
	var noGroup noGroupError
	if errors.As(err, &missing) || errors.As(err, &noGroup) || errors.Is(err, definition.ErrNoChain) ||
		errors.Is(err, layout.ErrNoTask) || errors.Is(err, service.ErrNoSecret) {
		return statusNotFound
	}
	switch client.StatusOf(err) {
	case http.StatusBadRequest:
		return statusUsage
	case http.StatusUnauthorized, http.StatusForbidden:
		return statusNotAllowed
	case http.StatusNotFound:
		return statusNotFound
	case http.StatusConflict, http.StatusLocked:
		return statusConflict
	}
	if codeOf(err) == "idempotency_mismatch" {
		return statusConflict
	}
	return statusFailed
}

func codeOf(err error) string {
	var e *client.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// explain says what went wrong, and what helps where that is known.
func explain(err error) string {
	hint := ""
	switch status := client.StatusOf(err); {
	case client.IsUnreachable(err):
		hint = fmt.Sprintf(`no server answers at %s; start one with "millrace dev", or set MILLRACE_URL to where it is`, addressOf(err))
	case status == http.StatusUnauthorized:
		hint = "set MILLRACE_TOKEN to a token that the server knows"
	case status == http.StatusForbidden:
		hint = "the role of the token in MILLRACE_TOKEN does not allow this"
	case codeOf(err) == "idempotency_mismatch":
		hint = "use another --once key for other events"
	}
	if hint == "" {
		return err.Error()
	}
	return err.Error() + "\n  " + hint
}

// addressOf returns the address of the server that could not be reached.
func addressOf(err error) string {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		if at, err := url.Parse(failed.URL); err == nil {
			return at.Scheme + "://" + at.Host
		}
	}
	return "its address"
}
