package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/millrace/millrace/shared/event"
)

// Emit appends custom events, all or none, next to each other, and returns their EventIds in the same order. It makes an
// Idempotency-Key of its own, so that the append happens once however often it is sent. An error that is
// [Temporary] means that patience ended and the outcome is unknown. Concurrent calls share requests, see [Options.Unshared].
func (c *Client) Emit(ctx context.Context, events []event.Event) (ids []event.ID, err error) {
	text := appendFresh(nil, events)
	if len(events) > 0 && balanced(events) {
		ids, err = c.emits.do(ctx, elements(text), len(events))
	} else {
		ids, err = c.emitArray(ctx, text, len(events))
	}
	if err != nil {
		return nil, fmt.Errorf("client: emit %d events: %w", len(events), err)
	}
	return ids, nil
}

// emitArray appends the events of an array, under a key of its own.
func (c *Client) emitArray(ctx context.Context, array []byte, _ int) ([]event.ID, error) {
	ids, _, err := c.emitCall(ctx, call{body: array, key: c.ownKey(), lines: "events"})
	return ids, err
}

// EmitOnce is Emit with a key of the caller's: within 24 hours, the same events under the same key are appended once and
// get the same ids, over any number of calls and processes; replayed says that an earlier request appended them. Other events
// under that key are refused with 422. With an empty key the request is sent once.
func (c *Client) EmitOnce(ctx context.Context, key string, events []event.Event) (ids []event.ID, replayed bool, err error) {
	ids, replayed, err = c.emitCall(ctx, call{body: appendFresh(nil, events), key: key})
	if err != nil {
		return nil, false, fmt.Errorf("client: emit %d events: %w", len(events), err)
	}
	return ids, replayed, nil
}

func (c *Client) emitCall(ctx context.Context, q call) (ids []event.ID, replayed bool, err error) {
	patience := c.patience
	if q.key == "" {
		patience = -1 // without a key, a repeated append might be a second one
	}
	q.method, q.path = http.MethodPost, base+"event"
	answered, err := c.repeat(ctx, q, patience)
	if err != nil {
		return nil, false, err
	}
	if ids, err = decodeIDs(answered.body); err != nil {
		return nil, false, fmt.Errorf("answer: %w", err)
	}
	return ids, answered.header.Get("Idempotent-Replayed") == "true", nil
}

// decodeIDs reads {"eventIds":[…]}.
func decodeIDs(body []byte) ([]event.ID, error) {
	if list, ok := bytes.CutPrefix(bytes.TrimSpace(body), []byte(`{"eventIds":[`)); ok {
		if ids, ok := readIDs(list); ok {
			return ids, nil
		}
	}
	var answer struct {
		EventIDs []event.ID `json:"eventIds"`
	}
	err := json.Unmarshal(body, &answer)
	return answer.EventIDs, err
}

// readIDs reads the form in which the server writes them; ok is false if it is another one.
func readIDs(list []byte) (ids []event.ID, ok bool) {
	ids = make([]event.ID, 0, 1+bytes.Count(list, []byte{','}))
	for {
		end := bytes.IndexAny(list, ",]")
		if end < 0 {
			return nil, false
		}
		id, err := strconv.ParseInt(string(list[:end]), 10, 64)
		if err != nil {
			return nil, false
		}
		ids = append(ids, event.ID(id))
		if list[end] == ']' {
			return ids, string(list[end:]) == "]}"
		}
		list = list[end+1:]
	}
}

// balanced reports whether each event stays one JSON value beside others, whatever the caller has written as its fields.
func balanced(events []event.Event) bool {
	for i := range events {
		depth, fields := 0, events[i].Fields
		for k := 0; k < len(fields) && depth >= 0; k++ {
			switch fields[k] {
			case '"':
				if k = closing(fields, k+1); k < 0 {
					return false
				}
			case '{', '[':
				depth++
			case '}', ']':
				depth--
			}
		}
		if depth != 0 {
			return false
		}
	}
	return true
}

// closing returns where the string ends that begins at from; -1 if it does not.
func closing(text []byte, from int) int {
	quote := bytes.IndexByte(text[from:], '"')
	if quote < 0 {
		return -1
	}
	if bytes.IndexByte(text[from:from+quote], '\\') < 0 { // most have no escapes
		return from + quote
	}
	for ; from < len(text); from++ {
		switch text[from] {
		case '"':
			return from
		case '\\':
			from++
		}
	}
	return -1
}

// appendFresh appends events as an array, without ids and origins, so that the journal gives them new ones.
func appendFresh(text []byte, events []event.Event) []byte {
	size := len("[]")
	for i := range events {
		size += events[i].Size() + len(",")
	}
	text = append(slices.Grow(text, size), '[')
	for i := range events {
		if i > 0 {
			text = append(text, ',')
		}
		fresh := event.Event{Type: events[i].Type, Key: events[i].Key, Fields: events[i].Fields}
		text = fresh.AppendJSON(text, true)
	}
	return append(text, ']')
}
