package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/rule"
	"github.com/millrace/millrace/shared/queue/tasklog"
	"github.com/millrace/millrace/shared/queue/view"
	"github.com/millrace/millrace/shared/task"
)

// Engine keeps tasks; a [queue.Queue] is one.
type Engine interface {
	Enqueue(ctx context.Context, once *queue.Once, news ...queue.New) (queue.Enqueued, error)
	Get(ctx context.Context, id task.ID) (task.Task, error)
	List(ctx context.Context, l view.Listing) (view.Page, error)
	Logs(ctx context.Context, id task.ID, l tasklog.Query) (tasklog.Page, error)
	Stop(ctx context.Context, id task.ID) (running bool, err error)
	Retry(ctx context.Context, once *queue.Once, id task.ID) (queue.Enqueued, error)
	Why(ctx context.Context, id task.ID) (view.Reason, error)
	SetRule(ctx context.Context, path string, kind rule.Kind, on bool) error
	Rules(ctx context.Context, prefix string) ([]rule.Rules, error)
	Counts(ctx context.Context, prefix string) (map[string]map[task.State]int64, error)
	OldestWaiting(ctx context.Context, prefix string) (map[string]time.Time, error)
}

// Definitions returns what is declared; a [definition.Catalog] is one.
type Definitions interface {
	Current(ctx context.Context) (*definition.Set, error) // the set in force, perhaps as it was some seconds ago
	Refresh(ctx context.Context) (*definition.Set, error) // the set in force now
}

// search returns what is declared; it reads that anew if the current set does not have what is sought, since another
// process may have declared it a moment ago.
func search(ctx context.Context, d Definitions, has func(*definition.Set) bool) (*definition.Set, error) {
	set, err := d.Current(ctx)
	if err != nil || has(set) {
		return set, err
	}
	return d.Refresh(ctx)
}

// find returns the task whose id the path holds, if it is one of the dialects. Any other id is a 404, malformed ones too.
func (x *exchange) find(e Engine, dialects ...task.Dialect) (task.Task, error) {
	t, err := x.findAny(e)
	if err == nil && !slices.Contains(dialects, t.Dialect) {
		err = queue.ErrNoTask
	}
	return t, err
}

// findAny returns the task whose id the path holds.
func (x *exchange) findAny(e Engine) (task.Task, error) {
	id, err := x.taskID()
	if err != nil {
		return task.Task{}, err
	}
	return e.Get(x.r.Context(), id)
}

// taskID returns the id that the path holds. A malformed one is that of no task.
func (x *exchange) taskID() (task.ID, error) {
	id, err := task.ParseID(x.r.PathValue("id"))
	if err != nil {
		return "", queue.ErrNoTask
	}
	return id, nil
}

// fill fetches a task's payload if it is kept apart. The error is [queue.ErrNoTask] if the task is gone.
func (x *exchange) fill(e Engine, t *task.Task) error {
	if t.Apart == 0 || t.Payload != nil {
		return nil
	}
	whole, err := e.Get(x.r.Context(), t.ID)
	t.Payload = whole.Payload
	return err
}

// each calls show with the tasks of a page, their payloads fetched, and returns where the list goes on: before the page's end,
// after the last one shown, if the response is as large as the host can carry.
func (x *exchange) each(e Engine, page *view.Page, after func(*task.Task) string, show func(*task.Task)) (cursor string, err error) {
	size := 0
	for i := range page.Tasks {
		t := &page.Tasks[i]
		if size += max(t.Apart, len(t.Payload)) + len(t.Output) + len(t.Message); i > 0 && size > x.api.maxAnswer {
			return after(&page.Tasks[i-1]), nil
		}
		switch err := x.fill(e, t); {
		case errors.Is(err, queue.ErrNoTask): // removed meanwhile
		case err != nil:
			return "", err
		default:
			show(t)
		}
	}
	return page.Cursor, nil
}

// submission is what the operations that enqueue tasks share.
type submission struct {
	engine      Engine
	definitions Definitions
	flight      flight
}

// add enqueues tasks. A request that repeats an Idempotency-Key of the resource must have the same content.
func (s *submission) add(x *exchange, resource string, content []byte, news ...queue.New) (queue.Enqueued, error) {
	once, leave, err := s.flight.once(x, content, resource)
	if err != nil {
		return queue.Enqueued{}, err
	}
	defer leave()
	trace := traceOf(x.r.Header)
	for i := range news {
		news[i].Trace = trace
	}
	answer, err := s.engine.Enqueue(x.r.Context(), once, news...)
	switch {
	case err != nil:
		x.api.metrics.Outcome("enqueue", string(problemOf(err).Code), 0)
	case answer.Replayed:
		x.replayed(true)
		x.api.metrics.Outcome("enqueue", "replayed", 0)
	default:
		x.api.metrics.Outcome("enqueue", "added", len(answer.Tasks))
	}
	return answer, err
}

// traceOf returns the traceparent of a request, "" if there is none or it is malformed (W3C Trace Context).
func traceOf(h http.Header) string {
	trace := first(h, "Traceparent")
	if len(trace) != len("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01") || trace[:3] != "00-" {
		return ""
	}
	for i, c := range []byte(trace) {
		dash := i == 2 || i == 35 || i == 52
		hex := '0' <= c && c <= '9' || 'a' <= c && c <= 'f'
		if dash != (c == '-') || !dash && !hex {
			return ""
		}
	}
	return trace
}

// value responds with a value as JSON.
func (x *exchange) value(status int, value any) error {
	b := take()
	defer b.give()
	if err := b.json(value); err != nil {
		return err
	}
	x.json(status, b.bytes)
	return nil
}

// plainly are the rules of encoding/json without HTML's escapes, kept by an encoder that takes half the time.
var plainly = json.JoinOptions(jsonv1.DefaultOptionsV1(), jsontext.EscapeForHTML(false))

// json appends a value as JSON.
func (b *buffer) json(value any) error {
	if err := json.MarshalWrite(b, value, plainly); err != nil {
		return fmt.Errorf("api: render: %w", err)
	}
	return nil
}

// Write appends.
func (b *buffer) Write(p []byte) (int, error) {
	b.bytes = append(b.bytes, p...)
	return len(p), nil
}

// done responds with a 204: the act took effect, and there is nothing more to say.
func (x *exchange) done() error {
	x.WriteHeader(http.StatusNoContent)
	return nil
}

// statusIn reads a dialect's status from the query, in any case; "" where there is none.
func (q query) statusIn(d task.Dialect) (task.Status, error) {
	value, given, err := q.one("status")
	if !given || err != nil {
		return "", err
	}
	known := statusesOf(d)
	for _, status := range known {
		if strings.EqualFold(value, string(status)) {
			return status, nil
		}
	}
	return "", invalid("query.status", "%s is none; there are %s", strconv.Quote(value), join(known))
}

// states are all there are, in the order of a task's life.
var states = []task.State{
	task.Waiting, task.Ready, task.Running, task.Succeeded, task.Failed, task.Rejected, task.Stopped, task.Dropped, task.Missing,
}

// statusesOf returns a dialect's words for the states, each once.
func statusesOf(d task.Dialect) []task.Status {
	var all []task.Status
	for _, state := range states {
		if status := state.In(d); !slices.Contains(all, status) {
			all = append(all, status)
		}
	}
	return all
}

func join(all []task.Status) string {
	var b strings.Builder
	for i, status := range all {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(string(status))
	}
	return b.String()
}
