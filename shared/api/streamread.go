package api

import (
	"context"
	"net/http"
	"strconv"

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

func describeReadStream() *operation {
	return &operation{
		ID: "readStream", Tags: []string{"Streams"}, Summary: "What a consumer has not acknowledged",
		Description: "The oldest first. Reading changes nothing: the same events come until they are acknowledged.",
		Parameters: params{
			streamParam(), idHeader(consumerHeader, "Who reads"),
			queryParam("eventName", "", false, &schema{Type: "string", MaxLength: stream.MaxName,
				Description: "Of one name; otherwise of all names, in the stream's order"}),
			pageParams()[0], queryParam("timeout", "How long to wait for a first event, such as 60s", false, text("")),
		},
		Responses: answers(http.StatusOK, typeJSON, listOf(ref("StoredEvent"))), failures: []int{404},
	}
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
	if ask.Timeout, _, err = q.timeout(x.maxWait()); err != nil {
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

func describeStreamEvent() *operation {
	return &operation{
		ID: "streamEvent", Tags: []string{"Streams"}, Summary: "An event of any stream", Parameters: params{pathParam("id", "The event's UUID")},
		Responses: answers(http.StatusOK, typeJSON, ref("StoredEvent")), failures: []int{404},
	}
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
