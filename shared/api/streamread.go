package api

import (
	"context"
	"encoding/base64"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/millrace/millrace/shared/stream"
)

// StreamReader reads streams; a [stream.Streams] is one.
type StreamReader interface {
	Read(ctx context.Context, r stream.Reading) ([]stream.Stored, error)
	Get(ctx context.Context, id stream.UUID) (stream.Stored, string, error)
	List(ctx context.Context, after string, limit int) ([]stream.Overview, bool, error)
	Describe(ctx context.Context, name, after string, limit int) (stream.Overview, error)
	Consumers(ctx context.Context, name, after string, limit int) ([]stream.Lag, bool, error)
}

// Streams mounts the calls that read streams: a consumer's events, and lists.
func Streams(s StreamReader) Resource {
	return func(a *API) {
		for name, schema := range streamSchemas() {
			a.typed.OpenAPI().Components.Schemas.Map()[name] = schema
		}
		r := &streamReading{s}
		a.routeStream(operation{Operation: describeStreamRead(), right: ReadStream, handle: r.events})
		a.route(operation{
			Operation: huma.Operation{
				Method: http.MethodGet, Path: v1 + "/events/{id}", OperationID: "streamEvent", Tags: []string{"Streams"},
				Summary: "An event of any stream", Parameters: []*huma.Param{pathParam("id", "The event's UUID")},
				Responses: answers(http.StatusOK, typeJSON, ref("StoredEvent")), Errors: []int{404, 503},
			},
			right: ReadStream, handle: r.event,
		})
		r.mountLists(a)
	}
}

func describeStreamRead() huma.Operation {
	name, most := text("Of one name; otherwise of all names, in the stream's order"), stream.MaxName
	name.MaxLength = &most
	limit := pageParams()[0]
	op := huma.Operation{
		Method: http.MethodGet, Path: streamEventsPath, OperationID: "readStream", Tags: []string{"Streams"},
		Summary:     "What a consumer has not acknowledged",
		Description: "The oldest first. Reading changes nothing: the same events come until they are acknowledged.",
		Parameters: []*huma.Param{
			streamParam(), idHeader(consumerHeader, "Who reads"), queryParam("eventName", "", false, name), limit,
			queryParam("timeout", "How long to wait for a first event, such as 60s", false, text("")),
		},
		Responses: answers(http.StatusOK, typeJSON, listOf(ref("StoredEvent"))), Errors: []int{400, 404, 503},
	}
	return op
}

type streamReading struct{ streams StreamReader }

func (s *streamReading) events(x *exchange) error {
	ask, err := x.streamQuestion()
	if err != nil {
		return err
	}
	if ask.Timeout > 0 {
		x.waiting(+1)
		defer x.waiting(-1)
	}
	found, err := s.streams.Read(x.r.Context(), ask)
	if err != nil {
		return streamProblem(err)
	}
	x.api.metrics.Outcome("read_stream", map[bool]string{true: "empty", false: "events"}[len(found) == 0], len(found))
	b := take()
	defer b.give()
	b.bytes = append(b.bytes, '[')
	for i := range found {
		if i > 0 {
			b.bytes = append(b.bytes, ',')
		}
		b.bytes = appendStored(b.bytes, &found[i], "")
	}
	b.bytes = append(b.bytes, ']')
	x.json(http.StatusOK, b.bytes)
	return nil
}

func (x *exchange) streamQuestion() (ask stream.Reading, err error) {
	ask.MaxBytes = x.api.maxAnswer
	if ask.Stream, err = x.streamName(); err != nil {
		return ask, err
	}
	if ask.Consumer, err = x.uuidHeader(consumerHeader); err != nil {
		return ask, err
	}
	q, err := x.query()
	if err != nil {
		return ask, err
	}
	if ask.Limit, err = q.page(); err != nil {
		return ask, err
	}
	if ask.Timeout, _, err = q.timeout(x.api.maxWait); err != nil {
		return ask, err
	}
	name, given, err := q.one("eventName")
	if !given || err != nil {
		return ask, err
	}
	ask.Name, err = checkedName("query.eventName", name)
	return ask, err
}

// appendStored appends an event as it was given, with its sequence and its EventId; of, if not empty, is its stream.
func appendStored(dst []byte, e *stream.Stored, of string) []byte {
	dst = append(dst, `{"event":{"id":"`...)
	dst = append(dst, e.ID.String()...)
	dst = append(dst, `","name":`...)
	dst, _ = jsontext.AppendQuote(dst, e.Name) // names are UTF-8
	dst = append(dst, `,"version":`...)
	dst = strconv.AppendInt(dst, e.Version, 10)
	dst = append(dst, `},`...)
	dst = append(dst, e.Body...)
	dst = append(dst, `,"sequence":`...)
	dst = strconv.AppendInt(dst, e.Sequence, 10)
	dst = append(dst, `,"eventId":`...)
	dst = strconv.AppendInt(dst, int64(e.EventID), 10)
	if of != "" {
		dst = append(dst, `,"stream":`...)
		dst, _ = jsontext.AppendQuote(dst, of)
	}
	return append(dst, '}')
}

func (s *streamReading) event(x *exchange) error {
	id, err := stream.ParseUUID(x.r.PathValue("id"))
	if err != nil {
		return streamProblem(stream.ErrNoEvent)
	}
	found, of, err := s.streams.Get(x.r.Context(), id)
	if err != nil {
		return streamProblem(err)
	}
	x.json(http.StatusOK, appendStored(nil, &found, of))
	return nil
}

func (s *streamReading) mountLists(a *API) {
	list := func(path, id, summary string, params []*huma.Param, schema *huma.Schema, errors []int, handle func(*exchange) error) {
		mount := a.route
		if strings.Contains(path, "{stream}") {
			mount = a.routeStream
		}
		mount(operation{
			Operation: huma.Operation{
				Method: http.MethodGet, Path: path, OperationID: id, Tags: []string{"Streams"}, Summary: summary,
				Parameters: append(params, pageParams()...), Responses: pageOf(schema), Errors: errors,
			},
			right: ReadStream, handle: handle,
		})
	}
	list(streamsPath, "streams", "All streams", nil,
		object("", members{"streams": listOf(ref("Stream"))}, false, "streams"), []int{400, 503}, s.list)
	list(streamPath, "stream", "A stream, with its event names", []*huma.Param{streamParam()}, ref("Stream"), []int{400, 404, 503}, s.stream)
	list(v1+"/consumers", "streamConsumers", "How far the consumers of a stream are",
		[]*huma.Param{queryParam("stream", "", true, text(""))},
		object("", members{"consumers": listOf(ref("StreamConsumer"))}, false, "consumers"), []int{400, 404, 503}, s.consumers)
}

// streamView is a stream as lists show it.
type streamView struct {
	Stream   string      `json:"stream"`
	Producer stream.UUID `json:"producer"`
	Events   int64       `json:"events"`
	Names    []nameView  `json:"names"`
	More     bool        `json:"more_names,omitempty"`
}

type nameView struct {
	Name     string `json:"name"`
	Sequence int64  `json:"sequence"`
}

func viewStream(o *stream.Overview) streamView {
	v := streamView{Stream: o.Stream, Producer: o.Producer, Events: o.Events, Names: make([]nameView, len(o.Names)), More: o.More}
	for i, n := range o.Names {
		v.Names[i] = nameView(n)
	}
	return v
}

// listing reads what a list is asked for. Cursors are base64 of a name or key, which may hold any character.
func (x *exchange) listing() (q query, after string, limit int, err error) {
	q, limit, cursor, err := x.paging()
	if err != nil {
		return q, "", 0, err
	}
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || !utf8.Valid(text) || len(text) > maxCursor {
		return q, "", 0, badCursor()
	}
	return q, string(text), limit, nil
}

// maxCursor is how many bytes a cursor may have once it is decoded: the longest sort key.
const maxCursor = 1023

func (x *exchange) goesOn(q query, more bool, after string) {
	if more {
		x.next(q, base64.RawURLEncoding.EncodeToString([]byte(after)))
	}
}

func (s *streamReading) list(x *exchange) error {
	q, after, limit, err := x.listing()
	if err != nil {
		return err
	}
	all, more, err := s.streams.List(x.r.Context(), after, limit)
	if err != nil {
		return err
	}
	views := []streamView{}
	for i := range all {
		views = append(views, viewStream(&all[i]))
		x.goesOn(q, more && i == len(all)-1, all[i].Stream)
	}
	return x.value(http.StatusOK, map[string][]streamView{"streams": views})
}

func (s *streamReading) stream(x *exchange) error {
	name, err := x.streamName()
	if err != nil {
		return err
	}
	q, after, limit, err := x.listing()
	if err != nil {
		return err
	}
	o, err := s.streams.Describe(x.r.Context(), name, after, limit)
	if err != nil {
		return streamProblem(err)
	}
	if len(o.Names) > 0 {
		x.goesOn(q, o.More, o.Names[len(o.Names)-1].Name)
	}
	return x.value(http.StatusOK, viewStream(&o))
}

// lagView is how far a consumer is with an event name.
type lagView struct {
	Consumer  stream.UUID `json:"consumer"`
	Stream    string      `json:"stream"`
	EventName string      `json:"eventName"`
	Offset    int64       `json:"offset"`
	Behind    int64       `json:"behind"`
	Consumed  float64     `json:"consumedPercentage"`
	MovedAt   string      `json:"movedAt"`
}

func (s *streamReading) consumers(x *exchange) error {
	q, after, limit, err := x.listing()
	if err != nil {
		return err
	}
	name, err := q.needed("stream")
	if err != nil {
		return err
	}
	if name, err = checkedName("query.stream", name); err != nil {
		return err
	}
	all, more, err := s.streams.Consumers(x.r.Context(), name, after, limit)
	if err != nil {
		return streamProblem(err)
	}
	views := []lagView{}
	for i, l := range all {
		views = append(views, lagView{
			Consumer: l.Consumer, Stream: name, EventName: l.Name, Offset: l.Offset, Behind: l.Last - l.Offset,
			Consumed: share(l.Offset, l.Last), MovedAt: formatTime(l.Moved),
		})
		x.goesOn(q, more && i == len(all)-1, l.Cursor)
	}
	return x.value(http.StatusOK, map[string][]lagView{"consumers": views})
}

// share returns a part in percent, to two decimals, rounded down so that only the whole is 100.
func share(part, of int64) float64 {
	if of == 0 {
		return 100
	}
	return math.Floor(float64(part)*10000/float64(of)) / 100
}

func streamSchemas() map[string]*huma.Schema {
	event := streamEventMembers()
	event["event"] = object("", members{"id": uuidSchema(""), "name": text(""), "version": whole("", 1)}, false, "id", "name", "version")
	event["sequence"], event["eventId"] = whole("Of its name, from 1 without a gap", 1), eventID("Of StreamAppended on the journal")
	event["stream"] = text("The stream's name; only where an event is asked for by its UUID")
	return map[string]*huma.Schema{
		"StoredEvent": object("An event of a stream", event, false, "event", "system", "trigger", "payload", "sequence", "eventId"),
		"Stream": object("A stream", members{
			"stream": text(""), "producer": uuidSchema("Who owns it"), "events": whole("How many there are", 1),
			"names": listOf(object("", members{"name": text(""), "sequence": whole("Of the last event, and so how many there are", 1)},
				false, "name", "sequence")),
			"more_names": {Type: "boolean", Description: "There are more names: ask for the stream itself, and go on by its Link"},
		}, false, "stream", "producer", "events", "names"),
		"StreamConsumer": object("How far a consumer is with an event name", members{
			"consumer": uuidSchema(""), "stream": text(""), "eventName": text(""), "offset": whole("The last sequence acknowledged", 0),
			"behind": whole("Events not acknowledged yet", 0), "consumedPercentage": {Type: "number"}, "movedAt": dateTime("When the offset moved last"),
		}, false, "consumer", "stream", "eventName", "offset", "behind", "consumedPercentage", "movedAt"),
	}
}

func streamEventMembers() members {
	some := func(doc string) *huma.Schema {
		s, least := text(doc), 1
		s.MinLength = &least
		return s
	}
	return members{
		"system": object("Where it happened", members{
			"id": uuidSchema(""), "name": some(""), "time": some("ISO 8601, on the source system"), "timezone": some("Of the IANA database"),
		}, false, "id", "name", "time", "timezone"),
		"trigger": object("Why it happened", members{
			"type": choice("", "automatic", "manual"), "name": some("A script's path, or a user's name"),
		}, false, "type", "name"),
		"payload": {Type: "object", AdditionalProperties: true},
	}
}

func streamEventSchemas() map[string]*huma.Schema {
	event, least, most := streamEventMembers(), 1, stream.MaxName
	name, version := text("A fact, in past tense"), whole("Of its structure", 1)
	name.MinLength, name.MaxLength, version.Default = &least, &most, 1
	event["event"] = object("", members{"name": name, "version": version}, false, "name")
	return map[string]*huma.Schema{
		"StreamEvent": object("An event to append", event, false, "event", "system", "trigger", "payload"),
		"Appended": object("Where an event went", members{
			"id": uuidSchema("The event's"), "stream": text(""), "name": text(""), "sequence": whole("Of its name, from 1 without a gap", 1),
			"eventId": eventID("Of StreamAppended on the journal"),
		}, false, "id", "stream", "name", "sequence", "eventId"),
	}
}

func streamEventExample() any {
	return map[string]any{
		"event":   map[string]any{"name": "Subscription initiated", "version": 1},
		"system":  map[string]any{"id": "2480b859-e08a-4414-9c7d-003bc1a4c238", "name": "codello alvine", "time": time.Date(2021, 3, 10, 22, 13, 32, 0, time.UTC).Format(time.RFC3339), "timezone": "Europe/Berlin"},
		"trigger": map[string]any{"type": "automatic", "name": "/path/to/script.php"},
		"payload": map[string]any{"subscriptionId": "4711"},
	}
}
