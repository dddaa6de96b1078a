package api

import (
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/task"
)

const (
	maxEvents   = 1000 // of one batch
	maxModifier = 255  // characters

	anyModifier = "_" // of an event that has none
)

// handlerName names a handler: its name in a space of a canvas.
type handlerName struct{ canvas, space, name string }

// handler reads the path.
func (x *exchange) handler() (h handlerName, err error) {
	if h.canvas, err = x.named("canvas"); err != nil {
		return h, err
	}
	if h.space, err = x.named("space"); err != nil {
		return h, err
	}
	h.name, err = x.named("name")
	return h, err
}

// named reads a name that is a segment of the path, and checks that something can be defined by it.
func (x *exchange) named(parameter string) (string, error) {
	name := x.r.PathValue(parameter)
	if !utf8.ValidString(name) {
		return "", invalid("path."+parameter, "is not UTF-8")
	}
	if err := definition.ValidName(name); err != nil {
		return "", invalid("path."+parameter, "%v", err)
	}
	return name, nil
}

// path returns the path of the handler's job.
func (h handlerName) path() string {
	return definition.Handler{Canvas: h.canvas, Space: h.space, Name: h.name}.Path()
}

// canvasPrefix is what the paths of all handlers of a canvas begin with.
func canvasPrefix(canvas string) string { return "/canvases/" + canvas + "/" }

// handlerOf returns the handler whose job has that path.
func handlerOf(path string) (h handlerName, ok bool) {
	rest, ok := strings.CutPrefix(path, "/canvases/")
	if !ok {
		return h, false
	}
	parts := strings.SplitN(rest, "/", 3)
	if len(parts) < 3 {
		return h, false
	}
	return handlerName{parts[0], parts[1], parts[2]}, true
}

func describeEmitToHandler() *operation {
	return &operation{
		ID: "emitToHandler", Tags: []string{"Handlers"}, Summary: "Emit an event to a handler",
		Description: "Without a handler of that name, an event is recorded as missing.",
		Parameters:  append(handlerParams(), idempotencyKey()),
		Body:        jsonBody(ref("NewEvent"), newEventExample()),
		Responses:   answers(http.StatusAccepted, typeJSON, ref("EventAdded")),
	}
}

func describeEmitBatchToHandler() *operation {
	op := describeEmitToHandler()
	op.ID, op.Summary = "emitBatchToHandler", "Emit events to a handler"
	op.Body = jsonBody(listed(ref("NewEvent"), maxEvents), []any{newEventExample()})
	op.Responses = answers(http.StatusAccepted, typeJSON, listOf(ref("EventAdded")))
	return op
}

// newEvent is what a client says of an event.
type newEvent struct {
	value      jsontext.Value
	delayUntil time.Time
	modifier   string
}

func readNewEvent(location string, value jsontext.Value) (e newEvent, err error) {
	e.modifier = anyModifier
	err = readObject(location, value,
		member{name: "value", required: true, read: func(location string, value jsontext.Value) error {
			if err := limited(location, value); err != nil {
				return err
			}
			e.value = value.Clone()
			return e.value.Compact()
		}},
		timeMember("delay_until", &e.delayUntil),
		textMember("modifier", maxModifier, &e.modifier),
	)
	return e, err
}

// addedView is an event that was emitted, as clients see it.
type addedView struct {
	ID     task.ID     `json:"id"`
	Status task.Status `json:"status"`
}

func (s *submission) event(x *exchange) error {
	b := take()
	defer b.give()
	body, err := x.parsed(b)
	if err != nil {
		return err
	}
	e, err := readNewEvent("body", body)
	if err != nil {
		return err
	}
	views, err := s.emit(x, b.bytes, e)
	if err != nil {
		return err
	}
	return x.value(http.StatusAccepted, views[0])
}

func (s *submission) events(x *exchange) error {
	b := take()
	defer b.give()
	body, err := x.parsed(b)
	if err != nil {
		return err
	}
	var all []newEvent
	err = readList("body", body, maxEvents, func(location string, value jsontext.Value) error {
		e, err := readNewEvent(location, value)
		all = append(all, e)
		return err
	})
	if err != nil {
		return err
	}
	views, err := s.emit(x, b.bytes, all...)
	if err != nil {
		return err
	}
	return x.value(http.StatusAccepted, views)
}

// emit enqueues events for the handler that the path names.
func (s *submission) emit(x *exchange, body []byte, all ...newEvent) ([]addedView, error) {
	h, err := x.handler()
	if err != nil {
		return nil, err
	}
	set, err := search(x.r.Context(), s.definitions, func(set *definition.Set) bool {
		_, known := set.JobOf(h.path())
		return known
	})
	if err != nil {
		return nil, err
	}
	_, known := set.JobOf(h.path())
	news := make([]queue.New, len(all))
	for i, e := range all {
		news[i] = queue.New{
			Dialect: task.Event, Job: h.path(), Queue: definition.EventQueue, Payload: []byte(e.value), NotBefore: e.delayUntil,
			Modifier: e.modifier, Missing: !known,
		}
	}
	answer, err := s.add(x, h.path(), body, news...)
	if err != nil {
		return nil, err
	}
	views := make([]addedView, len(answer.Tasks))
	for i := range answer.Tasks {
		t := &answer.Tasks[i].Task
		views[i] = addedView{t.ID, "new"}
		if t.State == task.Missing {
			views[i].Status = "missing"
		}
	}
	return views, nil
}

func canvasParam() *param { return nameParam("canvas", "The canvas's name") }

func handlerParams() params {
	return params{canvasParam(), nameParam("space", "Such as WORKER or CRON"), nameParam("name", "The handler's")}
}

func newEventExample() any { return map[string]any{"value": map[string]any{"parcel": 17}} }

func newEventSchema() *schema {
	modifier := textOf("", 1, maxModifier)
	modifier.Default = anyModifier
	return object("An event for a handler", members{
		"value":       {Description: "What the handler is given: any JSON, up to 256 KiB"},
		"delay_until": dateTime("It does not start before this time; default: at once"),
		"modifier":    modifier,
	}, false, "value")
}

func eventAddedSchema() *schema {
	return object("", members{"id": text(""), "status": choice("", "new", "missing")}, false, "id", "status")
}
