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

// HandlerName names a handler of events, as in Dark. Each part has 1 to 255 bytes of UTF-8, without a slash.
type HandlerName struct{ Canvas, Space, Name string }

// String returns CANVAS/SPACE/NAME.
func (h HandlerName) String() string { return h.Canvas + "/" + h.Space + "/" + h.Name }

func canvasPath(canvas string) string { return v1 + "canvases/" + url.PathEscape(canvas) }

func (h HandlerName) path() string {
	return canvasPath(h.Canvas) + "/handlers/" + url.PathEscape(h.Space) + "/" + url.PathEscape(h.Name)
}

// NewEvent is an event for a handler.
type NewEvent struct {
	Value      json.RawMessage // any JSON, up to 256 KiB
	DelayUntil time.Time       // not before; zero: at once
	Modifier   string          // at most 255 characters; default "_"
}

// MarshalJSON returns the event as the body of a request.
func (e NewEvent) MarshalJSON() ([]byte, error) {
	return encode(struct {
		Value      json.RawMessage `json:"value"`
		DelayUntil Time            `json:"delay_until,omitzero"`
		Modifier   string          `json:"modifier,omitempty"`
	}{e.Value, Time{e.DelayUntil}, e.Modifier})
}

// EmittedTo is the server's response to an emitted event.
type EmittedTo struct {
	ID     string `json:"id"`     // of the event
	Status string `json:"status"` // new, or missing where there is no such handler
}

// EmitTo emits an event to a handler, once however often it is sent.
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
	Retries         int             `json:"retries"`                    // how often it was tried again
	DelayUntil      Time            `json:"delay_until"`                // not before
	EnqueuedAt      Time            `json:"enqueued_at"`                // when it was emitted
	LastProcessedAt Time            `json:"last_processed_at,omitzero"` // the last start or end of an attempt; zero before the first
	DequeuedBy      string          `json:"dequeued_by,omitempty"`      // who runs it, or ran it last
}

// HandlerEvent returns an event of a canvas by its id.
func (c *Client) HandlerEvent(ctx context.Context, canvas, id string) (e HandlerEvent, err error) {
	if err := c.get(ctx, canvasPath(canvas)+"/events/"+url.PathEscape(id), &e); err != nil {
		return e, fmt.Errorf("client: event %s: %w", id, err)
	}
	return e, nil
}

// HandlerEvents yields the events of a handler, newest first: those of one status, or of all if that is empty; at most so
// many, or all if that is 0. An error is the last it yields.
func (c *Client) HandlerEvents(ctx context.Context, h HandlerName, status string, most int) iter.Seq2[HandlerEvent, error] {
	query := url.Values{}
	if status != "" {
		query.Set("status", status)
	}
	return pages[HandlerEvent](ctx, c, "events of "+h.String(), "events", h.path()+"/events", query, most)
}

// Handler is a handler and its state.
type Handler struct {
	Name       string           `json:"name"`
	Space      string           `json:"space"`
	State      string           `json:"state"`                    // run, pause or block
	Counts     map[string]int64 `json:"counts"`                   // events by status
	OldestWait *int64           `json:"oldest_wait_ms,omitempty"` // how long the oldest waiting event waits; nil: nothing waits
}

// Handlers yields the handlers of a canvas, by space and name. An error is the last it yields.
func (c *Client) Handlers(ctx context.Context, canvas string) iter.Seq2[Handler, error] {
	return pages[Handler](ctx, c, "handlers of "+canvas, "handlers", canvasPath(canvas)+"/handlers", url.Values{}, 0)
}

// SetRule sets a rule that holds a handler's events, pause or block, or removes it.
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
