package api

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/millrace/millrace/shared/queue"
)

// mountRules mounts a path for each kind of rule, since they demand different rights, as in Dark: operators pause, admins block.
func (h *handlerReading) mountRules(a *API) {
	for kind, right := range map[queue.RuleKind]Right{queue.Pause: Operate, queue.Block: Administer} {
		for method, on := range map[string]bool{http.MethodPut: true, http.MethodDelete: false} {
			op := huma.Operation{
				Method: method, Path: handlerPath + "/rules/" + string(kind), OperationID: string(kind) + "Handler", Tags: []string{"Handlers"},
				Summary:     "Hold a handler's events: " + string(kind),
				Description: "Events that run are not stopped. A rule may be set before its handler is defined, and twice.",
				Parameters:  handlerParams(), Responses: empty(), Errors: []int{400, 503},
			}
			if !on {
				op.OperationID, op.Summary = "un"+op.OperationID, "End the rule "+string(kind)
				op.Description = "Lets the events go, in their order, unless the other rule holds them. A rule may be ended twice."
			}
			a.route(operation{Operation: op, right: right, handle: func(x *exchange) error { return h.rule(x, kind, on) }})
		}
	}
}

func (h *handlerReading) rule(x *exchange, kind queue.RuleKind, on bool) error {
	name, err := x.handler()
	if err != nil {
		return err
	}
	if err := h.engine.SetRule(x.r.Context(), name.path(), kind, on); err != nil {
		return err
	}
	return x.done()
}

// empty describes the response of an act that returns nothing.
func empty() map[string]*huma.Response {
	return map[string]*huma.Response{"204": {
		Description: http.StatusText(http.StatusNoContent),
		Headers:     map[string]*huma.Param{"X-Request-Id": requestIDHeader()},
	}}
}
