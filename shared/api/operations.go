package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/millrace/millrace/shared/clock"
)

// Probes are the checks and measurements of the process that [Operations] mounts. The zero value of each field leaves its part out.
type Probes struct {
	// Ready returns nil if requests can be served: the store and whatever else is needed can be reached. Default: always.
	Ready func(context.Context) error

	// Metrics is the handler of /metrics. Without it the path does not exist.
	Metrics http.Handler

	// OpenMetrics lets anyone read /metrics. Default: it takes a token that may read, such as a viewer's.
	OpenMetrics bool
}

var statusOK = map[string]string{"status": "ok"}

func describeHealth() *operation {
	return &operation{
		ID: "healthz", Tags: []string{"Operations"}, Summary: "Is the process alive?",
		Responses: answers(http.StatusOK, typeJSON, ref("StatusBody")),
	}
}

func healthy(x *exchange) error { return x.value(http.StatusOK, statusOK) }

func describeReady() *operation {
	return &operation{
		ID: "readyz", Tags: []string{"Operations"}, Summary: "Can it serve?",
		Description: "Checks that the store, and the queue that wakes workers if there is one, can be reached, and that the process's clock is right.",
		Responses:   answers(http.StatusOK, typeJSON, ref("StatusBody")), failures: []int{503},
	}
}

func (p Probes) ready(x *exchange) error {
	if p.Ready != nil {
		if err := p.Ready(x.r.Context()); err != nil {
			return fmt.Errorf("%w: %w", problem(CodeUnavailable, "not ready to serve%s", p.reason(err)), err)
		}
	}
	return x.value(http.StatusOK, statusOK)
}

// NotReady is an error of [Probes].Ready of which everybody may know a part. The rest, which may name hosts and users, is in the log.
type NotReady struct {
	Public string
	Err    error
}

// Error returns both.
func (e *NotReady) Error() string { return e.Public + ": " + e.Err.Error() }

// Unwrap returns the rest.
func (e *NotReady) Unwrap() error { return e.Err }

// reason returns the public part of why the process is not ready: what cannot be used, or that its clock is off.
func (Probes) reason(err error) string {
	if part, ok := errors.AsType[*NotReady](err); ok {
		return ": " + part.Public + "; see the log"
	}
	if skew, ok := errors.AsType[*clock.Skew](err); ok {
		return ": " + skew.Error()
	}
	return ""
}

func describeMetrics() *operation {
	return &operation{
		ID: "metrics", Tags: []string{"Operations"}, Summary: "Measurements in the Prometheus text format",
		Responses: answers(http.StatusOK, "text/plain", text("One measurement a line")),
	}
}

func (p Probes) metrics(x *exchange) error {
	p.Metrics.ServeHTTP(x, x.r)
	return nil
}

func statusSchema() *schema { return object("", members{"status": constant("ok")}, false, "status") }
