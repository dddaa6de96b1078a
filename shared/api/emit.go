package api

import (
	"context"
	"crypto/sha256"
	"net/http"
	"strconv"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
)

// Emitter appends events; a [journal.Journal] is one.
type Emitter interface {
	Emit(ctx context.Context, events []event.Event, once *journal.Idempotency) (journal.Receipt, error)
}

func describeEmit() *operation {
	return &operation{
		ID: "emit", Tags: []string{"Journal"}, Summary: "Emit events",
		Description: "Appends custom events, all or none, in the order given. The same Idempotency-Key and body within 24 h " +
			"gives the first response again.",
		Parameters: params{idempotencyKey()},
		Body:       jsonBody(ref("Emission"), emissionExample()),
		Responses:  answers(http.StatusCreated, typeJSON, ref("Emitted")),
	}
}

// emission is the operation's state.
type emission struct {
	journal Emitter
	flight  flight
}

// emit appends events. This is the most frequent operation, so it reads, parses and renders without reflection.
func (e *emission) emit(x *exchange) error {
	b := take()
	defer b.give()
	if err := x.read(b); err != nil {
		return err
	}
	events, err := event.ParseEvents(b.bytes)
	if err != nil {
		return err
	}
	once, leave, err := e.flight.once(x, b.bytes)
	if err != nil {
		return err
	}
	defer leave()
	receipt, err := e.journal.Emit(x.r.Context(), events, once)
	if err != nil {
		x.api.metrics.Outcome("emit", string(problemOf(err).Code), 0)
		return err
	}
	x.emitted(b, receipt)
	return nil
}

// emitted responds with the ids, rendered into b; a repeated request gets the same ones.
func (x *exchange) emitted(b *buffer, r journal.Receipt) {
	if r.Replayed {
		x.replayed(true)
		x.api.metrics.Outcome("emit", "replayed", 0)
	} else {
		x.api.metrics.Outcome("emit", "appended", r.Count)
	}
	b.bytes = append(b.bytes[:0], `{"eventIds":[`...)
	for i := range r.Count {
		if i > 0 {
			b.bytes = append(b.bytes, ',')
		}
		b.bytes = strconv.AppendInt(b.bytes, int64(r.FirstID)+int64(i), 10)
	}
	b.bytes = append(b.bytes, "]}"...)
	x.json(http.StatusCreated, b.bytes)
}

// maxKey is how many characters an Idempotency-Key may have.
const maxKey = 255

// idempotency returns the request's idempotency, nil if it has no key. Keys are visible ASCII; their scope is the token and the route.
func (x *exchange) idempotency(body []byte) (*journal.Idempotency, error) {
	values := x.r.Header["Idempotency-Key"]
	if len(values) == 0 {
		return nil, nil
	}
	key := values[0]
	if len(values) > 1 || len(key) < 1 || len(key) > maxKey {
		return nil, invalid(inKeyHeader, "want one key of 1 to %d characters", maxKey)
	}
	for i := range len(key) {
		if key[i] < '!' || key[i] > '~' {
			return nil, invalid(inKeyHeader, "want visible ASCII without spaces")
		}
	}
	return &journal.Idempotency{Scope: x.token.Name + " " + x.route, Key: key, Fingerprint: sha256.Sum256(body)}, nil
}
