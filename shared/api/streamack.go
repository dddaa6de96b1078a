package api

import (
	"context"
	"mime"
	"net/http"
	"net/url"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/stream"
)

// Offsets keeps the offsets that consumers move; a [stream.Streams] is one.
type Offsets interface {
	Acknowledge(ctx context.Context, name string, consumer, id stream.UUID) (int64, error)
	Move(ctx context.Context, name string, consumer stream.UUID, eventName string, to int64) error
}

func describeAcknowledge() *operation {
	action := object("", members{"action": constant("ACK")}, false, "action")
	op := &operation{
		ID: "acknowledge", Tags: []string{"Streams"}, Summary: "Acknowledge an event",
		Description: "Events of a name are acknowledged one after the other. One that is acknowledged already changes nothing; " +
			"one that is not the next is a conflict.",
		Parameters: append(offsetParams(), pathParam("id", "The event's UUID")),
		Body:       jsonBody(action, map[string]string{"action": "ACK"}),
		Responses:  answers(http.StatusOK, typeJSON, offsetSchema()), failures: []int{404, 409},
	}
	op.Body.Content[typeForm] = &media{Schema: action}
	return op
}

func describeMove() *operation {
	return &operation{
		ID: "moveOffset", Tags: []string{"Streams"}, Summary: "Move an offset",
		Description: "Backward, so that events are read again, or forward, so that events are left out. 0 is the beginning.",
		Parameters:  offsetParams(),
		Body: jsonBody(object("", members{"eventName": text(""), "offset": whole("", 0)}, false, "eventName", "offset"),
			map[string]any{"eventName": "Subscription initiated", "offset": 0}),
		Responses: answers(http.StatusOK, typeJSON, offsetSchema()), failures: []int{404, 422},
	}
}

func offsetParams() params {
	return params{streamParam(), idHeader(consumerHeader, "Whose offset it is")}
}

func offsetSchema() *schema {
	return object("", members{"offset": whole("The last sequence acknowledged", 0)}, false, "offset")
}

// typeForm is the media type of HTML forms.
const typeForm = "application/x-www-form-urlencoded"

type moving struct{ offsets Offsets }

func (m *moving) acknowledge(x *exchange) error {
	name, consumer, err := x.whoseOffset()
	if err != nil {
		return err
	}
	if err := x.readAction(); err != nil {
		return err
	}
	id, err := stream.ParseUUID(x.r.PathValue("id"))
	if err != nil {
		return streamProblem(stream.ErrNoEvent)
	}
	offset, err := m.offsets.Acknowledge(x.r.Context(), name, consumer, id)
	if err != nil {
		err = streamProblem(err)
		x.api.metrics.Outcome("acknowledge", string(problemOf(err).Code), 0)
		return err
	}
	x.api.metrics.Outcome("acknowledge", "acknowledged", 1)
	return x.value(http.StatusOK, map[string]int64{"offset": offset})
}

func (x *exchange) whoseOffset() (name string, consumer stream.UUID, err error) {
	if name, err = x.streamName(); err != nil {
		return "", consumer, err
	}
	consumer, err = x.uuidHeader(consumerHeader)
	return name, consumer, err
}

// readAction reads the one thing that can be done with an event, in JSON or as a form.
func (x *exchange) readAction() error {
	if kind, _, err := mime.ParseMediaType(first(x.r.Header, "Content-Type")); err == nil && kind == typeForm {
		b := take()
		defer b.give()
		if err := x.readPlain(b); err != nil {
			return err
		}
		values, err := url.ParseQuery(string(b.bytes))
		if err != nil {
			return invalid("body", "is not a form")
		}
		for name := range values {
			if name != "action" {
				return invalid("body."+name, "is not known here; known is action")
			}
		}
		if len(values["action"]) != 1 {
			return invalid("body.action", "is needed, once")
		}
		return checkAction("body.action", values["action"][0])
	}
	return x.object(checkedMember("action", checkAction))
}

func checkAction(location, action string) error {
	if action != "ACK" {
		return invalid(location, "want ACK")
	}
	return nil
}

func (m *moving) move(x *exchange) error {
	name, consumer, err := x.whoseOffset()
	if err != nil {
		return err
	}
	var eventName string
	var offset int64
	of := nameMember(&eventName)
	of.name = "eventName"
	if err := x.object(of, offsetMember(&offset)); err != nil {
		return err
	}
	if err := m.offsets.Move(x.r.Context(), name, consumer, eventName, offset); err != nil {
		return streamProblem(err)
	}
	return x.value(http.StatusOK, map[string]int64{"offset": offset})
}

func offsetMember(into *int64) member {
	return member{name: "offset", required: true, read: func(location string, value jsontext.Value) error {
		n, ok := wholeNumber(value, 0, int64(event.MaxID))
		if !ok {
			return invalid(location, "want a whole number from 0 to 2^53")
		}
		*into = n
		return nil
	}}
}
