package api

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"unicode/utf8"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/stream"
)

// The headers that say which producer or consumer asks.
const (
	producerHeader = "X-Producer-ID"
	consumerHeader = "X-Consumer-ID"
)

// Appender appends to streams; a [stream.Streams] is one.
type Appender interface {
	Append(ctx context.Context, a stream.Append) (stream.Receipt, error)
}

func describeAppend() *operation {
	return &operation{
		ID: "appendToStream", Tags: []string{"Streams"}, Summary: "Append an event to a stream",
		Description: "The first producer of a stream owns it; any other's events are not stored, and take no sequence. " +
			"The same Idempotency-Key and body within 24 h gives the first response again.",
		Parameters: params{streamParam(), idHeader(producerHeader, "Whose stream it is"), idempotencyKey()},
		Body:       jsonBody(ref("StreamEvent"), streamEventExample()),
		Responses:  answers(http.StatusCreated, typeJSON, ref("Appended")),
		failures:   []int{423},
	}
}

func describeAppendBatch() *operation {
	op := describeAppend()
	op.ID, op.Summary = "appendBatchToStream", "Append events to a stream, all or none"
	op.Description += fmt.Sprintf(" The events have at most %d different names together.", stream.MaxNames)
	op.Body = jsonBody(listed(ref("StreamEvent"), stream.MaxBatch), []any{streamEventExample()})
	op.Responses = answers(http.StatusCreated, typeJSON, listOf(ref("Appended")))
	return byLines(op)
}

// appending is the state of the operations that append.
type appending struct {
	streams Appender
	flight  flight
	zones   zones
}

// appendedView says where an event went.
type appendedView struct {
	ID       stream.UUID `json:"id"`
	Stream   string      `json:"stream"`
	Name     string      `json:"name"`
	Sequence int64       `json:"sequence"`
	EventID  event.ID    `json:"eventId"`
}

func (p *appending) one(x *exchange) error {
	views, err := p.append(x, func(body []byte) ([]stream.Event, error) {
		e, err := p.zones.parseStreamEvent(body)
		return []stream.Event{e}, err
	})
	if err != nil {
		return err
	}
	return x.value(http.StatusCreated, views[0])
}

func (p *appending) batch(x *exchange) error {
	views, err := p.append(x, p.zones.parseStreamEvents)
	if err != nil {
		return err
	}
	return x.value(http.StatusCreated, views)
}

// append reads a request, appends the events that it holds and returns where they went.
func (p *appending) append(x *exchange, parse func([]byte) ([]stream.Event, error)) ([]appendedView, error) {
	var ask stream.Append
	var err error
	if ask.Stream, err = x.streamName(); err != nil {
		return nil, err
	}
	if ask.Producer, err = x.uuidHeader(producerHeader); err != nil {
		return nil, err
	}
	b := take()
	defer b.give()
	if err := x.read(b); err != nil {
		return nil, err
	}
	if ask.Events, err = parse(b.bytes); err != nil {
		return nil, err
	}
	if ask.Once, err = x.onceInStream(ask, b.bytes); err != nil {
		return nil, err
	}
	leave, err := p.flight.enter(ask.Once)
	if err != nil {
		return nil, err
	}
	defer leave()
	receipt, err := p.streams.Append(x.r.Context(), ask)
	if err != nil {
		err = streamProblem(err)
		x.api.metrics.Outcome("append", string(problemOf(err).Code), 0)
		return nil, err
	}
	return x.appended(ask.Stream, receipt), nil
}

// onceInStream returns the request's idempotency: its fingerprint covers the producer too.
func (x *exchange) onceInStream(ask stream.Append, body []byte) (*journal.Idempotency, error) {
	once, err := x.idempotency(body, ask.Stream)
	if once == nil || err != nil {
		return nil, err
	}
	once.Fingerprint = sha256.Sum256(append(ask.Producer[:], body...))
	return once, nil
}

func (x *exchange) appended(name string, r stream.Receipt) []appendedView {
	if r.Replayed {
		x.replayed(true)
		x.api.metrics.Outcome("append", "replayed", 0)
	} else {
		x.api.metrics.Outcome("append", "appended", len(r.Events))
	}
	views := make([]appendedView, len(r.Events))
	for i, e := range r.Events {
		views[i] = appendedView{ID: e.ID, Stream: name, Name: e.Name, Sequence: e.Sequence, EventID: e.EventID}
	}
	return views
}

// streamName reads the stream from the path: 1 to 255 characters, any.
func (x *exchange) streamName() (string, error) {
	name := x.r.PathValue("stream")
	if name == "" { // see alsoAt; an empty segment is no path
		name = "/"
	}
	return checkedName("path.stream", name)
}

// checkedName returns the name of a stream or an event if it is a valid one.
func checkedName(location, name string) (string, error) {
	if !utf8.ValidString(name) {
		return "", invalid(location, "is not UTF-8")
	}
	if n := utf8.RuneCountInString(name); n < 1 || n > stream.MaxName {
		return "", invalid(location, "want 1 to %d characters", stream.MaxName)
	}
	return name, nil
}

// uuidHeader reads who asks.
func (x *exchange) uuidHeader(name string) (stream.UUID, error) {
	location := "header." + name
	values := x.r.Header.Values(name)
	if len(values) != 1 {
		return stream.UUID{}, invalid(location, "is needed, once")
	}
	id, err := stream.ParseUUID(values[0])
	if err != nil {
		return id, invalid(location, "%v", err)
	}
	return id, nil
}

// streamProblem returns what a client may know of an error of package stream.
func streamProblem(err error) error {
	if order, ok := errors.AsType[*stream.OutOfOrderError](err); ok {
		return problem(CodeConflict, "sequence %d of %s is not the next to acknowledge, sequence %d is",
			order.This, strconv.Quote(order.Name), order.Next)
	}
	switch {
	case errors.Is(err, stream.ErrLocked):
		return problem(CodeLocked, "the stream is another producer's; nothing was stored")
	case errors.Is(err, stream.ErrNoStream):
		return problem(CodeNotFound, "there is no stream of this name")
	case errors.Is(err, stream.ErrNoEvent):
		return problem(CodeNotFound, "there is no event with this id")
	case errors.Is(err, stream.ErrBeyond):
		return problem(CodeImpossible, "the offset lies beyond the last sequence of this event name").at("body.offset")
	case errors.Is(err, stream.ErrTooManyNames):
		return problem(CodeTooLarge, "more than %d different event names; send them in several requests", stream.MaxNames).at("body")
	}
	return err
}
