package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

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

// status is the body of both probes.
type status struct {
	Body struct {
		Status string `json:"status" enum:"ok"`
	}
}

func ok() *status {
	s := &status{}
	s.Body.Status = "ok"
	return s
}

// Operations mounts /healthz and /readyz, which are open and tell nothing of what is stored, and /metrics.
func Operations(p Probes) Resource {
	return func(a *API) {
		register(a, Anyone, huma.Operation{
			Method: http.MethodGet, Path: "/healthz", OperationID: "healthz", Tags: []string{"Operations"},
			Summary: "Is the process alive?",
		}, func(context.Context, *struct{}) (*status, error) { return ok(), nil })
		register(a, Anyone, huma.Operation{
			Method: http.MethodGet, Path: "/readyz", OperationID: "readyz", Tags: []string{"Operations"},
			Summary: "Can it serve?", Description: "Checks that the store, and the queue that wakes workers if there is one, can be reached, and that the process's clock is right.", Errors: []int{http.StatusServiceUnavailable},
		}, func(ctx context.Context, _ *struct{}) (*status, error) { return p.ready(ctx) })
		if p.Metrics != nil {
			a.mountMetrics(p)
		}
	}
}

func (p Probes) ready(ctx context.Context) (*status, error) {
	if p.Ready == nil {
		return ok(), nil
	}
	if err := p.Ready(ctx); err != nil {
		return nil, fmt.Errorf("%w: %w", problem(CodeUnavailable, "not ready to serve%s", p.reason(err)), err)
	}
	return ok(), nil
}

// reason returns the public part of why the process is not ready: that its clock is off. The rest is in the log.
func (Probes) reason(err error) string {
	if skew, ok := errors.AsType[*clock.Skew](err); ok {
		return ": " + skew.Error()
	}
	return ""
}

func (a *API) mountMetrics(p Probes) {
	right := Read // the names of routes and operations, and how much is done, are not for everybody
	if p.OpenMetrics {
		right = Anyone
	}
	a.route(operation{
		Operation: huma.Operation{
			Method: http.MethodGet, Path: "/metrics", OperationID: "metrics", Tags: []string{"Operations"},
			Summary:   "Measurements in the Prometheus text format",
			Responses: answers(http.StatusOK, "text/plain", text("One measurement a line")),
		},
		right: right,
		handle: func(x *exchange) error {
			p.Metrics.ServeHTTP(x, x.r)
			return nil
		},
	})
}
