package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/schedule"
	"github.com/millrace/millrace/shared/task"
)

// Scheduler keeps schedules; a [schedule.Scheduler] is one.
type Scheduler interface {
	Names(ctx context.Context) ([]string, error)
	Soonest(ctx context.Context) ([]schedule.Entry, error)
	Some(ctx context.Context, names []string) ([]schedule.Status, error)
	Get(ctx context.Context, name string) (schedule.Status, error)
	Suspend(ctx context.Context, name string, on bool) error
	Trigger(ctx context.Context, once *queue.Once, name string) (queue.Enqueued, error)
	Backfill(ctx context.Context, once *queue.Once, name string, from, to time.Time) (schedule.Backfilled, error)
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

func describeSchedules() *operation {
	return &operation{
		ID: "schedules", Tags: []string{"Schedules"}, Summary: "All schedules",
		Parameters: append(params{queryParam("order", "By name, which is the default, or by when they fire next", false, choice("", "name", "next"))}, pageParams()...),
		Responses:  pageIn("schedules", ref("Schedule")),
	}
}

func describeSchedule() *operation {
	return onSchedule("schedule", "A schedule", answers(http.StatusOK, typeJSON, ref("Schedule")))
}

func describePutSchedule() *operation {
	op := onSchedule("putSchedule", "Declare a schedule", newOrThere(ref("Schedule"), "The schedule was declared before"))
	op.Body = jsonBody(declaredSchedule(), map[string]any{"cron": "0 0 12 * * ?", "job": "/topics/a/b"})
	op.failures = nil
	return op
}

func describeDeleteSchedule() *operation {
	return onSchedule("deleteSchedule", "End a schedule", empty())
}

func describeSuspendSchedule() *operation {
	return onSchedule("suspendSchedule", "Keep a schedule from firing", empty())
}

func describeResumeSchedule() *operation {
	return onSchedule("resumeSchedule", "Let a schedule fire again, from now on", empty())
}

func describeTrigger() *operation {
	made := object("", members{"task_id": text("Absent for an order whose first step waits for something else")}, false)
	op := onSchedule("triggerSchedule", "Make a task of a schedule now", answers(http.StatusAccepted, typeJSON, made))
	op.Description = "409: the schedule's order is suspended, or is under way."
	op.failures = append(op.failures, 409)
	op.Parameters = append(op.Parameters, idempotencyKey())
	return op
}

func describeBackfill() *operation {
	ticks := whole("How many ticks of the range were made: those that were not there already; of an order, the one with which it starts, since it is under way then", 0)
	op := onSchedule("backfillSchedule", "Make the ticks of a range of time, both ends included",
		answers(http.StatusAccepted, typeJSON, object("", members{"ticks": ticks}, false, "ticks")))
	span := object("", members{"from": dateTime("The first time"), "to": dateTime("The last time, not in the future")}, false, "from", "to")
	op.Parameters = append(op.Parameters, idempotencyKey())
	op.Body = jsonBody(span, map[string]any{"from": "2026-03-01T00:00:00Z", "to": "2026-03-02T00:00:00Z"})
	op.failures = append(op.failures, 422)
	return op
}

// onSchedule describes an operation on one schedule.
func onSchedule(id, summary string, r responses) *operation {
	return &operation{
		ID: id, Tags: []string{"Schedules"}, Summary: summary, Responses: r, failures: []int{404},
		Parameters: params{pathParam("name", "The schedule's name; that of a collection's is sources/SOURCE/COLLECTION, escaped")},
	}
}

// scheduleView is a schedule as clients see it.
type scheduleView struct {
	Name        string          `json:"name"`
	Cron        string          `json:"cron,omitempty"`
	Date        string          `json:"date,omitempty"`
	Timezone    string          `json:"timezone,omitempty"`
	DST         string          `json:"dst,omitempty"`
	Job         string          `json:"job,omitempty"`
	Order       *scheduledView  `json:"order,omitempty"`
	Payload     json.RawMessage `json:"payload,omitempty"`
	Misfire     string          `json:"misfire,omitempty"`
	Overlap     string          `json:"overlap,omitempty"`
	Suspended   bool            `json:"suspended"`
	Description string          `json:"description"`
	Next        []string        `json:"next"`
	Last        *lastView       `json:"last,omitempty"`
	Warnings    []string        `json:"warnings"`
}

// scheduledView is the order that a schedule makes.
type scheduledView struct {
	Chain string `json:"chain"`
	ID    string `json:"id"`
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
	v.Order = (*scheduledView)(s.Order)
	for _, at := range s.Next {
		v.Next = append(v.Next, formatTime(at))
	}
	if s.FiredAt.IsZero() {
		return v, nil
	}
	v.Last = &lastView{FiredAt: formatTime(s.FiredAt), TaskID: s.Task}
	if s.Task == "" { // it starts an order, which tells itself what becomes of it
		return v, nil
	}
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
	names, err := c.page(x, query, cursor, limit)
	if err != nil {
		return err
	}
	all, err := c.schedules.Some(x.r.Context(), names)
	if err != nil {
		return err
	}
	views := make([]scheduleView, len(all))
	for i := range all {
		if views[i], err = c.view(x.r.Context(), &all[i]); err != nil {
			return err
		}
	}
	return x.value(http.StatusOK, map[string][]scheduleView{"schedules": views})
}

// page returns the names of the schedules of a page of a list, which is by their names or by when they fire next.
func (c *scheduling) page(x *exchange, q query, cursor string, limit int) ([]string, error) {
	order, given, err := q.one("order")
	if err != nil {
		return nil, err
	}
	if !given {
		order = "name"
	}
	switch order {
	case "name":
		all, err := c.schedules.Names(x.r.Context())
		return listAfter(x, q, all, func(name *string) string { return *name }, cursor, limit), err
	case "next":
		all, err := c.schedules.Soonest(x.r.Context())
		if err != nil {
			return nil, err
		}
		var names []string
		for _, e := range listAfter(x, q, all, placeOf, cursor, limit) {
			names = append(names, e.Name)
		}
		return names, nil
	}
	return nil, invalid("query.order", "want name or next")
}

// placeOf returns the place of a schedule in the list of those that fire next, as a text in the same order.
func placeOf(e *schedule.Entry) string {
	if e.Next.IsZero() {
		return "never " + e.Name
	}
	return formatTime(e.Next) + " " + e.Name
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

func (c *scheduling) suspend(x *exchange) error { return c.hold(x, true) }
func (c *scheduling) resume(x *exchange) error  { return c.hold(x, false) }

func (c *scheduling) hold(x *exchange, on bool) error {
	if err := c.schedules.Suspend(x.r.Context(), x.r.PathValue("name"), on); err != nil {
		return err
	}
	return x.done()
}

func (c *scheduling) trigger(x *exchange) error {
	name := x.r.PathValue("name")
	once, leave, err := c.flight.once(x, []byte(name), name)
	if err != nil {
		return err
	}
	defer leave()
	answer, err := c.schedules.Trigger(x.r.Context(), once, name)
	if err != nil {
		return err
	}
	x.replayed(answer.Replayed)
	return x.value(http.StatusAccepted, struct {
		TaskID task.ID `json:"task_id,omitempty"`
	}{answer.Tasks[0].Task.ID})
}

func (c *scheduling) backfill(x *exchange) error {
	var from, to time.Time
	first, last := timeMember("from", &from), timeMember("to", &to)
	first.required, last.required = true, true
	name := x.r.PathValue("name")
	once, leave, err := x.objectOnce(&c.flight, name, first, last)
	if err != nil {
		return err
	}
	defer leave()
	made, err := c.schedules.Backfill(x.r.Context(), once, name, from, to)
	if err != nil {
		return err
	}
	x.replayed(made.Replayed)
	return x.value(http.StatusAccepted, map[string]int{"ticks": made.Ticks})
}

func scheduleSchema() *schema {
	return object("Tasks at regular times", with(declaredSchedule().Properties, members{
		"suspended": yesNo(""), "description": text("The expression in words"), "next": listOf(dateTime("")),
		"last": object("The newest tick", members{
			"fired_at": dateTime(""), "outcome": text("The state of its task; absent where it has none, as that of an order"), "task_id": text(""),
		}, false, "fired_at"),
		"warnings": listOf(text("")),
	}), false, "name", "suspended", "description", "next", "warnings")
}
