package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// maxCloudEvents is the size limit of a delivery's body in bytes; triggers send small ones.
const maxCloudEvents = 1 << 20

// receive handles a delivery and responds with 204 when all of it is processed, with 400 when it is malformed, which
// senders don't repeat, and with 500 when it failed, so that all of it is delivered again.
func (f Function) receive(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxCloudEvents))
	if err != nil {
		problem(w, http.StatusRequestEntityTooLarge, "too_large", "a delivery may have 1 MiB")
		return
	}
	received, err := cloudEvents(r.Header, body)
	if err != nil {
		problem(w, http.StatusBadRequest, "invalid", err.Error())
		return
	}
	ticks, messages, err := f.sort(received)
	if err != nil {
		problem(w, http.StatusBadRequest, "invalid", err.Error())
		return
	}
	if err := f.deliver(r.Context(), ticks, messages); err != nil {
		f.log().Error("delivery failed", "error", err)
		problem(w, http.StatusInternalServerError, "internal", "the delivery failed; the log says why")
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// sort separates ticks from messages: a tick's data names it, as in {"tick":"sweep"}, or its type is that of a ping
// source.
func (f Function) sort(received []cloudEvent) (ticks []Tick, messages []Message, err error) {
	for _, event := range received {
		tick, isTick := event.tick(f.Name)
		switch {
		case isTick && f.Tick != nil:
			ticks = append(ticks, tick)
		case !isTick && f.Messages != nil:
			messages = append(messages, Message{ID: event.ID, Body: event.Data, Attributes: event.Extra})
		default:
			return nil, nil, fmt.Errorf("%s takes %s; the event %q of type %q is neither", f.Name, f.takesEvents(), event.ID, event.Type)
		}
	}
	return ticks, messages, nil
}

func (f Function) takesEvents() string {
	switch {
	case f.Messages == nil:
		return `ticks, whose data is {"tick":"` + f.Name + `"},`
	case f.Tick == nil:
		return "messages"
	}
	return "ticks and messages"
}

// tick returns the event as a tick; ok is false if it is none. Knative's PingSource may send no data at all.
func (e cloudEvent) tick(function string) (Tick, bool) {
	var data struct {
		Tick *string   `json:"tick"`
		Time time.Time `json:"time"`
	}
	named := json.Unmarshal(e.Data, &data) == nil && data.Tick != nil
	if !named && e.Type != "dev.knative.sources.ping" {
		return Tick{}, false
	}
	tick := Tick{Name: function, At: e.Time}
	if named {
		tick.Name = *data.Tick
	}
	if !data.Time.IsZero() {
		tick.At = data.Time
	}
	return tick, true
}

func (f Function) deliver(ctx context.Context, ticks []Tick, messages []Message) error {
	var failed []error
	for _, t := range ticks {
		failed = append(failed, f.tick(ctx, t.Name, t.At))
	}
	if len(messages) > 0 {
		for _, failure := range f.take(ctx, messages) {
			failed = append(failed, fmt.Errorf("message %s: %w", failure.ID, failure.Err))
		}
	}
	return errors.Join(failed...)
}
