package api

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/schedule"
	"github.com/millrace/millrace/shared/task"
)

// Scheduler keeps schedules; a [schedule.Scheduler] is one.
type Scheduler interface {
	List(ctx context.Context) ([]schedule.Status, error)
	Get(ctx context.Context, name string) (schedule.Status, error)
	Suspend(ctx context.Context, name string, on bool) error
	Trigger(ctx context.Context, once *queue.Once, name string) (queue.Enqueued, error)
	Backfill(ctx context.Context, name string, from, to time.Time) (int, error)
}

// scheduling is the state of the operations on schedules.
type scheduling struct {
	schedules Scheduler
	tasks     interface {
		Get(ctx context.Context, id task.ID) (task.Task, error)
	}
	catalog Editor
	flight  flight
}

const (
	schedulesPath = v1 + "/schedules"
	schedulePath  = schedulesPath + "/{name}"
)

// Schedules mounts the schedules: what they are and when they fire, declaring them, and acting on them.
func Schedules(s Scheduler, e Engine, b Editor) Resource {
	return func(a *API) {
		maps.Copy(a.typed.OpenAPI().Components.Schemas.Map(), scheduleSchemas())
		c := &scheduling{schedules: s, tasks: e, catalog: b}
		mount := func(method, path, id, summary string, right Right, responses map[string]*huma.Response, errs []int, h func(*exchange) error) {
			op := huma.Operation{
				Method: method, Path: path, OperationID: id, Tags: []string{"Schedules"}, Summary: summary,
				Responses: responses, Errors: errs,
			}
			op.Parameters = pageParams()
			if path != schedulesPath {
				op.Parameters = []*huma.Param{pathParam("name", "The schedule's name; that of a collection's is sources/SOURCE/COLLECTION, escaped")}
			}
			switch id {
			case "triggerSchedule":
				op.Parameters = append(op.Parameters, idempotencyKey())
			case "putSchedule":
				op.RequestBody = jsonBody(declaredSchedule(), map[string]any{"cron": "0 0 12 * * ?", "job": "/topics/a/b"})
			case "backfillSchedule":
				op.RequestBody = jsonBody(backfillSchema(), map[string]any{"from": "2026-03-01T00:00:00Z", "to": "2026-03-02T00:00:00Z"})
			}
			a.route(operation{Operation: op, right: right, handle: h})
		}
		one := answers(http.StatusOK, typeJSON, ref("Schedule"))
		mount(http.MethodGet, schedulesPath, "schedules", "All schedules", Read,
			pageOf(object("", members{"schedules": listOf(ref("Schedule"))}, false, "schedules")), []int{400, 503}, c.list)
		mount(http.MethodGet, schedulePath, "schedule", "A schedule", Read, one, []int{404, 503}, c.get)
		put := maps.Clone(one)
		maps.Copy(put, answers(http.StatusCreated, typeJSON, ref("Schedule")))
		mount(http.MethodPut, schedulePath, "putSchedule", "Declare a schedule", Administer, put, []int{400, 413, 415, 503}, c.put)
		mount(http.MethodDelete, schedulePath, "deleteSchedule", "End a schedule", Administer, empty(), []int{404, 503}, c.delete)
		mount(http.MethodPost, schedulePath+"/suspend", "suspendSchedule", "Keep a schedule from firing", Operate, empty(), []int{404, 503}, c.suspend(true))
		mount(http.MethodPost, schedulePath+"/resume", "resumeSchedule", "Let a schedule fire again, from now on", Operate, empty(), []int{404, 503}, c.suspend(false))
		mount(http.MethodPost, schedulePath+"/trigger", "triggerSchedule", "Make a task of a schedule now", Operate,
			answers(http.StatusAccepted, typeJSON, ref("TaskID")), []int{400, 404, 409, 422, 503}, c.trigger)
		mount(http.MethodPost, schedulePath+"/backfill", "backfillSchedule", "Make the ticks of a range, both ends included", Operate,
			answers(http.StatusAccepted, typeJSON, object("", members{"ticks": whole("How many ticks of the range were made: those that were not there already", 0)}, false, "ticks")),
			[]int{400, 404, 413, 415, 422, 503}, c.backfill)
	}
}

// scheduleView is a schedule as clients see it.
type scheduleView struct {
	Name        string          `json:"name"`
	Cron        string          `json:"cron,omitempty"`
	Date        string          `json:"date,omitempty"`
	Timezone    string          `json:"timezone,omitempty"`
	DST         string          `json:"dst,omitempty"`
	Job         string          `json:"job"`
	Payload     json.RawMessage `json:"payload,omitempty"`
	Misfire     string          `json:"misfire,omitempty"`
	Overlap     string          `json:"overlap,omitempty"`
	Suspended   bool            `json:"suspended"`
	Description string          `json:"description"`
	Next        []string        `json:"next"`
	Last        *lastView       `json:"last,omitempty"`
	Warnings    []string        `json:"warnings"`
}

type lastView struct {
	FiredAt string      `json:"fired_at"`
	Outcome task.Status `json:"outcome,omitempty"`
	TaskID  task.ID     `json:"task_id,omitempty"`
}

func (c *scheduling) view(ctx context.Context, s *schedule.Status) (scheduleView, error) {
	v := scheduleView{
		Name: s.Name, Cron: s.Cron, Timezone: s.Timezone, DST: s.DST, Job: s.Job, Payload: s.Payload, Misfire: s.Misfire,
		Overlap: s.Overlap, Suspended: s.Suspended, Description: s.Words, Next: []string{}, Warnings: append([]string{}, s.Warnings...),
	}
	if !s.Date.IsZero() {
		v.Date = formatTime(s.Date)
	}
	for _, at := range s.Next {
		v.Next = append(v.Next, formatTime(at))
	}
	if s.FiredAt.IsZero() {
		return v, nil
	}
	v.Last = &lastView{FiredAt: formatTime(s.FiredAt), TaskID: s.Task}
	t, err := c.tasks.Get(ctx, s.Task)
	if errors.Is(err, queue.ErrNoTask) {
		v.Last.TaskID = "" // its history was removed
		return v, nil
	}
	v.Last.Outcome = t.StateAt(time.Now().UnixMicro(), false).In(t.Dialect)
	return v, err
}

func (c *scheduling) list(x *exchange) error {
	query, limit, cursor, err := x.paging()
	if err != nil {
		return err
	}
	all, err := c.schedules.List(x.r.Context())
	if err != nil {
		return err
	}
	all = listAfter(x, query, all, func(s *schedule.Status) string { return s.Name }, cursor, limit)
	views := make([]scheduleView, len(all))
	for i := range all {
		if views[i], err = c.view(x.r.Context(), &all[i]); err != nil {
			return err
		}
	}
	return x.value(http.StatusOK, map[string][]scheduleView{"schedules": views})
}

func (c *scheduling) get(x *exchange) error { return c.show(x, http.StatusOK) }

func (c *scheduling) show(x *exchange, status int) error {
	found, err := c.schedules.Get(x.r.Context(), x.r.PathValue("name"))
	if err != nil {
		return err
	}
	v, err := c.view(x.r.Context(), &found)
	if err != nil {
		return err
	}
	return x.value(status, v)
}

func (c *scheduling) put(x *exchange) error {
	put := func(s *definition.Set, text []byte) (*definition.Set, bool, error) {
		return s.PutSchedule(text, time.Now())
	}
	return x.put(c.catalog, x.r.PathValue("name"), put, c.show)
}

func (c *scheduling) delete(x *exchange) error {
	there, err := x.remove(c.catalog, x.r.PathValue("name"), (*definition.Set).WithoutSchedule)
	if err != nil {
		return err
	}
	if !there {
		return schedule.ErrNoSchedule
	}
	return x.done()
}

func (c *scheduling) suspend(on bool) func(*exchange) error {
	return func(x *exchange) error {
		if err := c.schedules.Suspend(x.r.Context(), x.r.PathValue("name"), on); err != nil {
			return err
		}
		return x.done()
	}
}

func (c *scheduling) trigger(x *exchange) error {
	name := x.r.PathValue("name")
	once, leave, err := c.flight.once(x, []byte(name))
	if err != nil {
		return err
	}
	defer leave()
	answer, err := c.schedules.Trigger(x.r.Context(), once, name)
	if err != nil {
		return err
	}
	x.replayed(answer.Replayed)
	return x.value(http.StatusAccepted, map[string]task.ID{"task_id": answer.Tasks[0].Task.ID})
}

func (c *scheduling) backfill(x *exchange) error {
	var from, to time.Time
	first, last := timeMember("from", &from), timeMember("to", &to)
	first.required, last.required = true, true
	if err := x.object(first, last); err != nil {
		return err
	}
	n, err := c.schedules.Backfill(x.r.Context(), x.r.PathValue("name"), from, to)
	if err != nil {
		return err
	}
	return x.value(http.StatusAccepted, map[string]int{"ticks": n})
}

func backfillSchema() *huma.Schema {
	return object("", members{"from": dateTime("The first time"), "to": dateTime("The last time, not in the future")}, false, "from", "to")
}

// scheduleSchemas describes what the operations on schedules return.
func scheduleSchemas() map[string]*huma.Schema {
	s := declaredSchedule()
	shown := maps.Clone(s.Properties)
	shown["suspended"] = &huma.Schema{Type: "boolean"}
	shown["description"] = text("The expression in words")
	shown["next"] = listOf(dateTime(""))
	shown["last"] = object("The newest tick", members{
		"fired_at": dateTime(""), "outcome": text("The state of its task"), "task_id": text(""),
	}, false, "fired_at")
	shown["warnings"] = listOf(text(""))
	return map[string]*huma.Schema{
		"Schedule": object("Tasks at regular times", shown, false, "name", "job", "suspended", "description", "next", "warnings"),
	}
}
