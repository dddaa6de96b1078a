package api

import (
	"errors"
	"net/http"
	"time"

	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/view"
	"github.com/millrace/millrace/shared/task"
)

func describeWhy() *operation {
	return &operation{
		ID: "why", Tags: []string{"Tasks"}, Summary: "Why a task is not running, in one sentence", Parameters: anyTaskParams(),
		Responses: answers(http.StatusOK, typeJSON, ref("Why")), failures: []int{404},
	}
}

func describeRetry() *operation {
	return &operation{
		ID: "retry", Tags: []string{"Tasks"}, Summary: "Do a task again",
		Description: "Makes a new task of one that is finished and did not succeed; any other is a conflict. Where another holds its " +
			"unique key, that one is returned.",
		Parameters: append(anyTaskParams(), idempotencyKey()),
		Responses:  newOrThere(ref("Job"), "The one that holds the unique key"), failures: []int{404},
	}
}

func anyTaskParams() params {
	return params{pathParam("id", "The task's id, whatever kind of task it is")}
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

func viewReason(r view.Reason, d task.Dialect) whyView {
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
	id, err := x.taskID()
	if err != nil {
		return err
	}
	once, err := x.idempotency([]byte(id), string(id))
	if err != nil {
		return err
	}
	if err := t.runnable(x, id); err != nil {
		return err
	}
	answer, err := t.engine.Retry(x.r.Context(), once, id)
	if err != nil {
		return err
	}
	x.replayed(answer.Replayed)
	return x.made(t.engine, &answer)
}

// runnable returns a 409 for a task whose job was missing and still is.
func (t *taskReading) runnable(x *exchange, id task.ID) error {
	found, err := t.engine.Get(x.r.Context(), id)
	if errors.Is(err, queue.ErrNoTask) || err == nil && found.State != task.Missing {
		return nil
	}
	if err != nil {
		return err
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

func whySchema() *schema {
	return object("", members{
		"state": text("The task's state, as GET of the task shows it"), "reason": text("One sentence"),
		"code":  choice("Stable and machine-readable", view.ReasonCodes()...),
		"since": dateTime("Since when this has been so, where that is known"), "details": object("The values that the sentence names", nil, true),
	}, false, "state", "reason", "code", "details")
}
