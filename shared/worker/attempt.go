package worker

import (
	"encoding/json"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/task"
)

// Attempt is one start of a task. Targets outside this process are sent its JSON.
type Attempt struct {
	ID        task.ID         `json:"id"`                 // of the task
	Token     string          `json:"token"`              // of the lease; it permits completing the attempt
	Job       string          `json:"job"`                // the path of the job
	Number    int             `json:"attempt"`            // from 1
	Payload   json.RawMessage `json:"payload"`            // of the task, JSON of at most 256 KiB
	CreatedAt event.Time      `json:"created_at"`         // in UTC, to the microsecond
	Callback  string          `json:"callback,omitempty"` // full URL of the lease; empty if [Options].URL is
	Order     *Order          `json:"order,omitempty"`    // whose step it is; then Payload holds the order's variables. nil: of none

	Target definition.Target `json:"-"` // where it runs
	Trace  string            `json:"-"` // traceparent with which the task was enqueued; may be empty
	PutOff time.Time         `json:"-"` // since when the target has only put the task off (429 or 503); zero: it has not
}

// Order is the order whose step an attempt is.
type Order struct {
	Path   string `json:"path"` // /CHAIN,ORDER
	NodeID string `json:"nodeId"`
}

// newAttempt returns the attempt of a lease; url is the server's, or empty.
func newAttempt(lease *queue.Lease, target definition.Target, url string) *Attempt {
	t := &lease.Task
	a := &Attempt{
		ID: t.ID, Token: lease.Token, Job: t.Job, Number: t.Attempt, Payload: t.Payload,
		CreatedAt: event.Time{Time: time.UnixMicro(t.Created).UTC()}, Target: target, Trace: t.Trace,
	}
	if t.PutOff != 0 {
		a.PutOff = time.UnixMicro(t.PutOff)
	}
	if t.Order != nil {
		a.Order = &Order{t.Order.Path(), t.Order.Node}
	}
	if url != "" {
		a.Callback = url + "/api/v1/leases/" + lease.Token
	}
	return a
}

// body returns the attempt as JSON.
func (a *Attempt) body() ([]byte, error) { return json.Marshal(a) }
