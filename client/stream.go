package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"time"

	"github.com/millrace/millrace/shared/event"
)

// StreamEvent is an event of a stream, as in the event server. Sequence, EventID and Stream are empty in an append.
type StreamEvent struct {
	Event    StreamFact      `json:"event"`
	System   StreamSystem    `json:"system"`
	Trigger  StreamTrigger   `json:"trigger"`
	Payload  json.RawMessage `json:"payload"`            // an object
	Sequence int64           `json:"sequence,omitempty"` // of its name, from 1 without a gap; set by the server
	EventID  event.ID        `json:"eventId,omitempty"`  // on the journal; set by the server
	Stream   string          `json:"stream,omitempty"`   // set only by [Client.StreamEvent]
}

// StreamFact says what happened.
type StreamFact struct {
	ID      string `json:"id,omitempty"`      // a UUID, set by the server
	Name    string `json:"name"`              // in past tense, at most 255 characters
	Version int64  `json:"version,omitempty"` // of the event's format, at least 1; default 1
}

// StreamSystem says where it happened.
type StreamSystem struct {
	ID       string `json:"id"` // a UUID
	Name     string `json:"name"`
	Time     string `json:"time"`     // ISO 8601
	Timezone string `json:"timezone"` // of the IANA database
}

// StreamTrigger says why it happened.
type StreamTrigger struct {
	Type string `json:"type"` // automatic or manual
	Name string `json:"name"` // a script's path, or a user's name
}

// Appended says where an event went.
type Appended struct {
	ID       string   `json:"id"`
	Stream   string   `json:"stream"`
	Name     string   `json:"name"`
	Sequence int64    `json:"sequence"` // of its name, from 1 without a gap
	EventID  event.ID `json:"eventId"`  // on the journal
}

func streamPath(stream string) string { return v1 + "streams/" + segment(stream) }

// segment escapes a name so that it is one segment of a path; "." and ".." would be taken for folders.
func segment(name string) string {
	switch name {
	case ".":
		return "%2E"
	case "..":
		return "%2E%2E"
	}
	return url.PathEscape(name)
}

// AppendToStream appends 1 to 1,000 events of at most 40 different names to a stream, all or none, in their order. The first producer
// of a stream owns it; others are refused with 423. key makes the append happen once within 24 hours, over any number of calls; without one the
// request is sent once, and concurrent calls share requests, see [Options.Unshared].
func (c *Client) AppendToStream(ctx context.Context, producer, stream, key string, events ...StreamEvent) ([]Appended, error) {
	if key == "" {
		return c.appendShared(ctx, lane{producer, stream, false}, events)
	}
	body, err := encode(events)
	var all []Appended
	if err == nil {
		all, err = c.appendArray(ctx, producer, stream, key, body)
	}
	if err != nil {
		return nil, fmt.Errorf("client: append to %s: %w", stream, err)
	}
	return all, nil
}

// appendShared appends events beside those of concurrent calls for the same lane.
func (c *Client) appendShared(ctx context.Context, l lane, events []StreamEvent) (all []Appended, err error) {
	body, err := encode(events)
	switch {
	case err != nil:
	case len(events) == 0:
		all, err = c.appendArray(ctx, l.producer, l.stream, "", body)
	default:
		s := c.lanes.enter(c, l)
		defer c.lanes.leave(l)
		all, err = s.do(ctx, elements(body), len(events))
	}
	if err != nil {
		return nil, fmt.Errorf("client: append to %s: %w", l.stream, err)
	}
	return all, nil
}

func (c *Client) appendArray(ctx context.Context, producer, stream, key string, array []byte) (all []Appended, err error) {
	patience := c.patience
	if key == "" {
		patience = -1
	}
	q := call{
		method: http.MethodPost, path: streamPath(stream) + "/events:batch", body: array, key: key,
		header: [2]string{"X-Producer-ID", producer}, lines: "body",
	}
	answer, err := c.repeat(ctx, q, patience)
	if err == nil {
		err = answer.decode(&all)
	}
	return all, err
}

// StreamQuery selects the events that a consumer has not acknowledged.
type StreamQuery struct {
	Stream   string
	Consumer string        // a UUID
	Name     string        // of the events; empty: all, in the stream's order
	Limit    int           // at most so many, up to 1,000; 0: the server's default, 100
	Wait     time.Duration // how long the server waits for a first event; 0: not at all
}

// ReadStream returns the oldest events that a consumer has not acknowledged.
func (c *Client) ReadStream(ctx context.Context, q StreamQuery) (events []StreamEvent, err error) {
	events, _, err = c.readStream(ctx, q, false)
	return events, err
}

// readStream is ReadStream. For a caller that pauses between requests, brief says that the server has not waited for that reason.
func (c *Client) readStream(ctx context.Context, q StreamQuery, pauses bool) (events []StreamEvent, brief bool, err error) {
	query := url.Values{}
	if q.Name != "" {
		query.Set("eventName", q.Name)
	}
	if q.Limit > 0 {
		query.Set("limit", fmt.Sprint(q.Limit))
	}
	if q.Wait > 0 {
		query.Set("timeout", fmt.Sprintf("%dms", q.Wait.Milliseconds()))
	}
	answer, err := c.ask(ctx, call{
		method: http.MethodGet, path: streamPath(q.Stream) + "/events", query: query, wait: q.Wait, pauses: pauses,
		header: [2]string{"X-Consumer-ID", q.Consumer},
	}, &events)
	if err != nil {
		return nil, false, fmt.Errorf("client: read %s: %w", q.Stream, err)
	}
	return events, toPause(answer.header), nil
}

// Acknowledge notes that a consumer is done with an event, and returns its offset. An event that is not the next of its name
// is a conflict (409); one that is acknowledged already is none.
func (c *Client) Acknowledge(ctx context.Context, consumer, stream, id string) (offset int64, err error) {
	path := streamPath(stream) + "/events/" + url.PathEscape(id)
	offset, err = c.offset(ctx, consumer, path, map[string]string{"action": "ACK"})
	if err != nil {
		return 0, fmt.Errorf("client: acknowledge %s of %s: %w", id, stream, err)
	}
	return offset, nil
}

// MoveOffset sets a consumer's offset of an event name: back, so that events are read again, or up. 0 is the beginning; an
// offset beyond the last sequence is refused with 422.
func (c *Client) MoveOffset(ctx context.Context, consumer, stream, eventName string, to int64) error {
	_, err := c.offset(ctx, consumer, streamPath(stream)+"/offsets", map[string]any{"eventName": eventName, "offset": to})
	if err != nil {
		return fmt.Errorf("client: move the offset of %s: %w", stream, err)
	}
	return nil
}

func (c *Client) offset(ctx context.Context, consumer, path string, body any) (int64, error) {
	text, err := encode(body)
	if err != nil {
		return 0, err
	}
	var moved struct {
		Offset int64 `json:"offset"`
	}
	_, err = c.ask(ctx, call{method: http.MethodPost, path: path, body: text, header: [2]string{"X-Consumer-ID", consumer}}, &moved)
	return moved.Offset, err
}

// StreamEvent returns an event of any stream by its id.
func (c *Client) StreamEvent(ctx context.Context, id string) (e StreamEvent, err error) {
	if err := c.get(ctx, v1+"events/"+url.PathEscape(id), &e); err != nil {
		return e, fmt.Errorf("client: event %s: %w", id, err)
	}
	return e, nil
}

// Stream is a stream, with how many events it has.
type Stream struct {
	Stream   string       `json:"stream"`
	Producer string       `json:"producer"`             // a UUID
	Events   int64        `json:"events"`               // how many it has
	Names    []StreamName `json:"names"`                // the first 100, by name
	More     bool         `json:"more_names,omitempty"` // there are further names
}

// StreamName is an event name of a stream.
type StreamName struct {
	Name     string `json:"name"`
	Sequence int64  `json:"sequence"` // of its last event
}

// Stream returns a stream by its name.
func (c *Client) Stream(ctx context.Context, name string) (s Stream, err error) {
	if err := c.get(ctx, streamPath(name), &s); err != nil {
		return s, fmt.Errorf("client: stream %s: %w", name, err)
	}
	return s, nil
}

// Streams yields all streams by name, page after page. An error is the last it yields.
func (c *Client) Streams(ctx context.Context) iter.Seq2[Stream, error] {
	return pages[Stream](ctx, c, "streams", "streams", v1+"streams", url.Values{}, 0)
}

// StreamConsumer is a consumer's offset of an event name.
type StreamConsumer struct {
	Consumer  string  `json:"consumer"`
	Stream    string  `json:"stream"`
	EventName string  `json:"eventName"`
	Offset    int64   `json:"offset"`             // the last sequence acknowledged
	Behind    int64   `json:"behind"`             // events not acknowledged yet
	Consumed  float64 `json:"consumedPercentage"` // 0 to 100
	MovedAt   Time    `json:"movedAt"`            // when the offset changed last
}

// StreamConsumers yields the consumers of a stream, page after page. An error is the last it yields.
func (c *Client) StreamConsumers(ctx context.Context, stream string) iter.Seq2[StreamConsumer, error] {
	return pages[StreamConsumer](ctx, c, "consumers of "+stream, "consumers", v1+"consumers", url.Values{"stream": {stream}}, 0)
}
