package worker

import (
	"encoding/json"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/task"
)

// Attempt is one start of a task. Its JSON is what targets outside this process are given.
type Attempt struct {
	ID        task.ID         `json:"id"`
	Token     string          `json:"token"` // of the lease; whoever has it may say how the attempt ended
	Job       string          `json:"job"`
	Number    int             `json:"attempt"` // from 1
	Payload   json.RawMessage `json:"payload"`
	CreatedAt event.Time      `json:"created_at"`         // in UTC, to the microsecond
	Callback  string          `json:"callback,omitempty"` // full URL of the lease; empty where the server does not know its own

	Target definition.Target `json:"-"` // where it runs
	Trace  string            `json:"-"` // traceparent of whoever enqueued the task; may be empty
	PutOff time.Time         `json:"-"` // since when the target has only asked to come back later; zero: it has not
}

// newAttempt answers the attempt that a lease is for; url is the server's, or empty.
func newAttempt(lease *queue.Lease, target definition.Target, url string) *Attempt {
	t := &lease.Task
	a := &Attempt{
		ID: t.ID, Token: lease.Token, Job: t.Job, Number: t.Attempt, Payload: t.Payload,
		CreatedAt: event.Time{Time: time.UnixMicro(t.Created).UTC()}, Target: target, Trace: t.Trace,
	}
	if t.PutOff != 0 {
		a.PutOff = time.UnixMicro(t.PutOff)
	}
	if url != "" {
		a.Callback = url + "/api/v1/leases/" + lease.Token
	}
	return a
}

// body answers the attempt as JSON.
func (a *Attempt) body() ([]byte, error) { return json.Marshal(a) }
