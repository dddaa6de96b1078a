package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"time"
)

// HandlerName names a handler of events (seed 002).
type HandlerName struct{ Canvas, Space, Name string }

// String answers CANVAS/SPACE/NAME.
func (h HandlerName) String() string { return h.Canvas + "/" + h.Space + "/" + h.Name }

func canvasPath(canvas string) string { return v1 + "canvases/" + url.PathEscape(canvas) }

func (h HandlerName) path() string {
	return canvasPath(h.Canvas) + "/handlers/" + url.PathEscape(h.Space) + "/" + url.PathEscape(h.Name)
}

// NewEvent is an event for a handler.
type NewEvent struct {
	Value      json.RawMessage // any JSON, up to 256 KiB
	DelayUntil time.Time       // zero: at once
	Modifier   string          // empty: "_"
}

// MarshalJSON answers the event as the server takes it.
func (e NewEvent) MarshalJSON() ([]byte, error) {
	return encode(struct {
		Value      json.RawMessage `json:"value"`
		DelayUntil Time            `json:"delay_until,omitzero"`
		Modifier   string          `json:"modifier,omitempty"`
	}{e.Value, Time{e.DelayUntil}, e.Modifier})
}

// EmittedTo is what became of an event.
type EmittedTo struct {
	ID     string `json:"id"`
	Status string `json:"status"` // new, or missing where there is no such handler
}

// EmitTo emits an event to a handler, once however often it has to be sent.
func (c *Client) EmitTo(ctx context.Context, h HandlerName, e NewEvent) (emitted EmittedTo, err error) {
	body, err := encode(e)
	if err == nil {
		_, err = c.ask(ctx, call{method: http.MethodPost, path: h.path() + "/events", body: body, key: c.ownKey()}, &emitted)
	}
	if err != nil {
		return EmittedTo{}, fmt.Errorf("client: emit to %v: %w", h, err)
	}
	return emitted, nil
}

// HandlerEvent is an event of a handler.
type HandlerEvent struct {
	ID              string          `json:"id"`
	Status          string          `json:"status"` // new, scheduled, locked, done, error or missing
	Canvas          string          `json:"canvas"`
	Space           string          `json:"space"`
	Name            string          `json:"name"`
	Modifier        string          `json:"modifier"`
	Value           json.RawMessage `json:"value"`
	Retries         int             `json:"retries"`
	DelayUntil      Time            `json:"delay_until"`
	EnqueuedAt      Time            `json:"enqueued_at"`
	LastProcessedAt Time            `json:"last_processed_at,omitzero"`
	DequeuedBy      string          `json:"dequeued_by,omitempty"`
}

// HandlerEvent answers an event of a canvas by its id.
func (c *Client) HandlerEvent(ctx context.Context, canvas, id string) (e HandlerEvent, err error) {
	if err := c.get(ctx, canvasPath(canvas)+"/events/"+url.PathEscape(id), &e); err != nil {
		return e, fmt.Errorf("client: event %s: %w", id, err)
	}
	return e, nil
}

// HandlerEvents yields the events of a handler, newest first; of one status, unless that is empty; at most so many, unless
// that is 0. An error is the last it yields.
func (c *Client) HandlerEvents(ctx context.Context, h HandlerName, status string, most int) iter.Seq2[HandlerEvent, error] {
	query := url.Values{}
	if status != "" {
		query.Set("status", status)
	}
	return pages[HandlerEvent](ctx, c, "events of "+h.String(), "events", h.path()+"/events", query, most)
}

// Handler is how a handler stands.
type Handler struct {
	Name       string           `json:"name"`
	Space      string           `json:"space"`
	State      string           `json:"state"` // run, pause or block
	Counts     map[string]int64 `json:"counts"`
	OldestWait *int64           `json:"oldest_wait_ms,omitempty"` // nil: nothing waits
}

// Handlers yields the handlers of a canvas, by space and name. An error is the last it yields.
func (c *Client) Handlers(ctx context.Context, canvas string) iter.Seq2[Handler, error] {
	return pages[Handler](ctx, c, "handlers of "+canvas, "handlers", canvasPath(canvas)+"/handlers", url.Values{}, 0)
}

// SetRule holds a handler's events by a rule, pause or block, or takes the rule away.
func (c *Client) SetRule(ctx context.Context, h HandlerName, rule string, on bool) error {
	method := http.MethodDelete
	if on {
		method = http.MethodPut
	}
	if err := c.act(ctx, method, h.path()+"/rules/"+url.PathEscape(rule)); err != nil {
		return fmt.Errorf("client: rule %s of %v: %w", rule, h, err)
	}
	return nil
}
