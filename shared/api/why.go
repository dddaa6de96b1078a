package api

import (
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/task"
)

// Tasks mounts the calls about tasks: sync tasks one by one and by their source, and cancelling them; for any task its
// log, why it is not running, and doing it again.
func Tasks(e Engine, d Definitions) Resource {
	return func(a *API) {
		t := &taskReading{engine: e, definitions: d}
		t.mountSync(a)
		t.mountAny(a)
	}
}

func (t *taskReading) mountAny(a *API) {
	id := []*huma.Param{pathParam("id", "The task's id, whatever kind of task it is")}
	a.route(operation{
		Operation: huma.Operation{
			Method: http.MethodGet, Path: v1 + "/jobs/{id}/why", OperationID: "why", Tags: []string{"Tasks"},
			Summary: "Why a task is not running, in one sentence", Parameters: id,
			Responses: answers(http.StatusOK, typeJSON, ref("Why")), Errors: []int{404, 503},
		},
		right: Read, handle: t.why,
	})
	a.route(operation{
		Operation: huma.Operation{
			Method: http.MethodPost, Path: v1 + "/jobs/{id}/retry", OperationID: "retry", Tags: []string{"Tasks"},
			Summary: "Do a task again",
			Description: "Makes a new task of one that is finished and did not succeed; any other is a conflict. Where another holds its " +
				"unique key, that one is returned.",
			Parameters: append(id, idempotencyKey()),
			Responses:  madeOrThere(ref("Job")), Errors: []int{400, 404, 409, 422, 503},
		},
		right: Operate, handle: t.retry,
	})
}

// whyView is a reason as clients see it.
type whyView struct {
	State   task.Status    `json:"state"`
	Reason  string         `json:"reason"`
	Code    string         `json:"code"`
	Since   string         `json:"since,omitempty"`
	Details map[string]any `json:"details"`
}

func (t *taskReading) why(x *exchange) error {
	found, err := x.findAny(t.engine)
	if err != nil {
		return err
	}
	reason, err := t.engine.Why(x.r.Context(), found.ID)
	if err != nil {
		return err
	}
	return x.value(http.StatusOK, viewReason(reason, found.Dialect))
}

func viewReason(r queue.Reason, d task.Dialect) whyView {
	v := whyView{State: r.State.In(d), Reason: r.Reason, Code: r.Code, Details: map[string]any{}}
	if !r.Since.IsZero() {
		v.Since = formatTime(r.Since)
	}
	for name, detail := range r.Details {
		if at, is := detail.(time.Time); is {
			detail = formatTime(at)
		}
		v.Details[name] = detail
	}
	return v
}

func (t *taskReading) retry(x *exchange) error {
	found, err := x.findAny(t.engine)
	if err != nil {
		return err
	}
	if err := t.runnable(x, &found); err != nil {
		return err
	}
	once, err := x.idempotency([]byte(found.ID))
	if err != nil {
		return err
	}
	answer, err := t.engine.Retry(x.r.Context(), once, found.ID)
	if err != nil {
		return err
	}
	x.replayed(answer.Replayed)
	return x.made(t.engine, &answer)
}

// madeOrThere describes a response that is 201 for a new task, and 200 for the one that is there already.
func madeOrThere(schema *huma.Schema) map[string]*huma.Response {
	responses := answers(http.StatusCreated, typeJSON, schema)
	responses["200"] = answers(http.StatusOK, typeJSON, schema)["200"]
	responses["200"].Description = "The one that holds the unique key"
	return responses
}

// runnable returns a 409 for a task whose job was missing and still is.
func (t *taskReading) runnable(x *exchange, found *task.Task) error {
	if found.State != task.Missing {
		return nil
	}
	set, err := t.definitions.Current(x.r.Context())
	if err != nil {
		return err
	}
	if _, known := set.JobOf(found.Job); !known {
		return problem(CodeConflict, "there is still no job %s that could run it", found.Job)
	}
	return nil
}

func whySchema() *huma.Schema {
	return object("", members{
		"state": text("The task's state, in the words of its kind"), "reason": text("One sentence"),
		"code":  choice("Stable and machine-readable", queue.ReasonCodes()...),
		"since": dateTime("Since when this has been so, where that is known"), "details": object("The values that the sentence names", nil, true),
	}, false, "state", "reason", "code", "details")
}
