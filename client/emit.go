package client

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/millrace/millrace/shared/event"
)

// Emit appends custom events, all or none, next to each other, and returns their EventIds in the same order. It makes an
// Idempotency-Key of its own, so that the append happens once however often it is sent. An error that is
// [Temporary] means that patience ended and the outcome is unknown.
func (c *Client) Emit(ctx context.Context, events []event.Event) ([]event.ID, error) {
	key := ""
	if c.patience >= 0 {
		key = rand.Text()
	}
	ids, _, err := c.EmitOnce(ctx, key, events)
	return ids, err
}

// EmitOnce is Emit with a key of the caller's: within 24 hours, the same events under the same key are appended once and
// get the same ids, over any number of calls and processes; replayed says that an earlier request appended them. Other events
// under that key are refused with 422. With an empty key the request is sent once.
func (c *Client) EmitOnce(ctx context.Context, key string, events []event.Event) (ids []event.ID, replayed bool, err error) {
	patience := c.patience
	if key == "" {
		patience = -1 // without a key, a repeated append might be a second one
	}
	q := call{method: http.MethodPost, path: base + "event", body: event.AppendEvents(nil, withoutIDs(events), true), key: key}
	answered, err := c.repeat(ctx, q, patience)
	if err != nil {
		return nil, false, fmt.Errorf("client: emit %d events: %w", len(events), err)
	}
	var answer struct {
		EventIDs []event.ID `json:"eventIds"`
	}
	if err := json.Unmarshal(answered.body, &answer); err != nil {
		return nil, false, fmt.Errorf("client: emit %d events: answer: %w", len(events), err)
	}
	return answer.EventIDs, answered.header.Get("Idempotent-Replayed") == "true", nil
}

// withoutIDs returns the events without ids and origins, so that the journal gives them new ones.
func withoutIDs(events []event.Event) []event.Event {
	fresh := slices.Clone(events)
	for i := range fresh {
		fresh[i].ID, fresh[i].Cause, fresh[i].By = 0, 0, ""
	}
	return fresh
}
