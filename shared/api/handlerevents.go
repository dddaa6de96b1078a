package api

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/rule"
	"github.com/millrace/millrace/shared/queue/view"
	"github.com/millrace/millrace/shared/task"
)

// handlerReading is what the operations about handlers share.
type handlerReading struct {
	engine      Engine
	definitions Definitions
}

func describeHandlerEvent() *operation {
	return &operation{
		ID: "handlerEvent", Tags: []string{"Handlers"}, Summary: "An event of a handler",
		Parameters: params{canvasParam(), pathParam("id", "The event's")},
		Responses:  answers(http.StatusOK, typeJSON, ref("HandlerEvent")), failures: []int{400, 404},
	}
}

func describeHandlerEvents() *operation {
	status := queryParam("status", "", false, text("One of "+join(statusesOf(task.Event))+", in any case"))
	return &operation{
		ID: "handlerEvents", Tags: []string{"Handlers"}, Summary: "The events of a handler, newest first",
		Parameters: slices.Concat(handlerParams(), params{status}, pageParams()),
		Responses:  pageIn("events", ref("HandlerEvent")), failures: []int{422},
	}
}

// eventView is an event of a handler as clients see it, with the columns of Dark's events.
type eventView struct {
	ID              task.ID         `json:"id"`
	Status          task.Status     `json:"status"`
	Canvas          string          `json:"canvas"`
	Space           string          `json:"space"`
	Name            string          `json:"name"`
	Modifier        string          `json:"modifier"`
	Value           json.RawMessage `json:"value"`
	Retries         int             `json:"retries"`
	DelayUntil      string          `json:"delay_until"`
	EnqueuedAt      string          `json:"enqueued_at"`
	LastProcessedAt string          `json:"last_processed_at,omitempty"`
	DequeuedBy      string          `json:"dequeued_by,omitempty"`
}

func viewEvent(t *task.Task, h handlerName, now int64, held bool) eventView {
	v := eventView{
		ID: t.ID, Status: t.StateAt(now, held).In(task.Event), Canvas: h.canvas, Space: h.space, Name: h.name,
		Modifier: t.Modifier, Value: t.Payload, Retries: retriesOf(t), DelayUntil: stampOf(cmp.Or(t.NotBefore, t.Created)),
		EnqueuedAt: stampOf(t.Created), DequeuedBy: t.Instance,
	}
	if t.Started > 0 {
		v.LastProcessedAt = stampOf(max(t.Started, t.Finished))
	}
	return v
}

// retriesOf counts the attempts that were followed by another: the one that is under way or was the last is none.
func retriesOf(t *task.Task) int {
	if t.State.Queued() {
		return t.Attempt
	}
	return max(t.Attempt-1, 0)
}

func (h *handlerReading) event(x *exchange) error {
	canvas, err := x.named("canvas")
	if err != nil {
		return err
	}
	t, err := x.find(h.engine, task.Event)
	if err != nil {
		return err
	}
	name, ok := handlerOf(t.Job)
	if !ok || name.canvas != canvas {
		return queue.ErrNoTask
	}
	held, err := h.held(x.r.Context(), t.Job)
	if err != nil {
		return err
	}
	return x.value(http.StatusOK, viewEvent(&t, name, time.Now().UnixMicro(), held))
}

// held reports whether a rule keeps the job of that path from being started.
func (h *handlerReading) held(ctx context.Context, path string) (bool, error) {
	rules, err := h.engine.Rules(ctx, path)
	return slices.ContainsFunc(rules, func(r rule.Rules) bool { return r.Path == path }), err
}

func (h *handlerReading) events(x *exchange) error {
	name, err := x.handler()
	if err != nil {
		return err
	}
	q, limit, from, err := x.paging()
	if err != nil {
		return err
	}
	status, err := q.statusIn(task.Event)
	if err != nil {
		return err
	}
	held, err := h.held(x.r.Context(), name.path())
	if err != nil {
		return err
	}
	now := time.Now().UnixMicro()
	page, err := h.engine.List(x.r.Context(), view.Listing{
		Group: name.path(), Newest: true, Limit: limit, Cursor: from, Match: func(t *task.Task) bool {
			return t.Dialect == task.Event && (status == "" || t.StateAt(now, held).In(task.Event) == status)
		},
	})
	if err != nil {
		return x.ofList(q, &page, err)
	}
	views := []eventView{}
	byID := func(t *task.Task) string { return t.ID.UUID() }
	cursor, err := x.each(h.engine, &page, byID, func(t *task.Task) { views = append(views, viewEvent(t, name, now, held)) })
	if err != nil {
		return err
	}
	x.next(q, cursor)
	return x.value(http.StatusOK, map[string][]eventView{"events": views})
}

func describeHandlers() *operation {
	return &operation{
		ID: "handlers", Tags: []string{"Handlers"}, Summary: "The handlers of a canvas",
		Description: "Those that are defined, those that a rule holds, and those that are missing but have events.",
		Parameters:  append(params{canvasParam()}, pageParams()...),
		Responses:   pageIn("handlers", ref("Handler")),
	}
}

// handlerView is a handler as clients see it: its state, and its events counted by status.
type handlerView struct {
	Name       string                `json:"name"`
	Space      string                `json:"space"`
	State      string                `json:"state"`
	Counts     map[task.Status]int64 `json:"counts"`
	OldestWait *int64                `json:"oldest_wait_ms,omitempty"`
}

func (h *handlerReading) handlers(x *exchange) error {
	canvas, err := x.named("canvas")
	if err != nil {
		return err
	}
	q, limit, cursor, err := x.paging()
	if err != nil {
		return err
	}
	if of, ok := handlerOf(cursor); cursor != "" && (!ok || of.canvas != canvas) {
		return badCursor()
	}
	all, err := h.look(x.r.Context(), canvas)
	if err != nil {
		return err
	}
	oldest, err := h.engine.OldestWaiting(x.r.Context(), canvasPrefix(canvas))
	if err != nil {
		return err
	}
	views := []handlerView{}
	for _, path := range keysAfter(x, q, all, cursor, limit) {
		view := all[path]
		if since, waits := oldest[path]; waits {
			wait := max(time.Since(since).Milliseconds(), 0)
			view.OldestWait = &wait
		}
		views = append(views, *view)
	}
	return x.value(http.StatusOK, map[string][]handlerView{"handlers": views})
}

// look returns all handlers of a canvas by path.
func (h *handlerReading) look(ctx context.Context, canvas string) (map[string]*handlerView, error) {
	set, err := h.definitions.Current(ctx)
	if err != nil {
		return nil, err
	}
	rules, err := h.engine.Rules(ctx, canvasPrefix(canvas))
	if err != nil {
		return nil, err
	}
	counts, err := h.engine.Counts(ctx, canvasPrefix(canvas))
	if err != nil {
		return nil, err
	}
	all := map[string]*handlerView{}
	for _, declared := range set.Handlers {
		if declared.Canvas == canvas {
			see(all, declared.Path())
		}
	}
	for _, rule := range rules {
		if v := see(all, rule.Path); v != nil {
			v.State = rule.State()
		}
	}
	for path, states := range counts {
		if v := see(all, path); v != nil {
			for state, n := range states {
				v.Counts[state.In(task.Event)] += n
			}
		}
	}
	return all, nil
}

// see returns the view of the handler of that path, a new one if it is not there yet; nil if no handler can have the path.
func see(all map[string]*handlerView, path string) *handlerView {
	if v := all[path]; v != nil {
		return v
	}
	h, ok := handlerOf(path)
	if !ok {
		return nil
	}
	v := &handlerView{Name: h.name, Space: h.space, State: rule.Rules{}.State(), Counts: map[task.Status]int64{}}
	for _, status := range statusesOf(task.Event) {
		v.Counts[status] = 0
	}
	all[path] = v
	return v
}

func handlerEventSchema() *schema {
	return object("An event of a handler", members{
		"id": text(""), "status": statusSchemaOf(task.Event), "canvas": text(""), "space": text(""), "name": text(""), "modifier": text(""),
		"value": {Description: "Any JSON"}, "retries": whole("How often it was tried again", 0),
		"delay_until": dateTime("It does not start before this time"),
		"enqueued_at": dateTime(""), "last_processed_at": dateTime("Left out until it was started"),
		"dequeued_by": text("The process that runs or ran it last; left out until it was started"),
	}, false, "id", "status", "canvas", "space", "name", "modifier", "value", "retries", "delay_until", "enqueued_at")
}

func handlerSchema() *schema {
	counts := members{}
	var names []string
	for _, status := range statusesOf(task.Event) {
		counts[string(status)] = whole("", 0)
		names = append(names, string(status))
	}
	return object("A handler", members{
		"name": text(""), "space": text(""),
		"state":          choice("block wins over pause", "run", "pause", "block"),
		"counts":         object("Of its events, by status", counts, false, names...),
		"oldest_wait_ms": whole("Milliseconds since the oldest waiting event could have been started; left out where none could", 0),
	}, false, "name", "space", "state", "counts")
}
