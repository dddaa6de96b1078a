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
	op := &operation{
		ID: "emit", Tags: []string{"Journal"}, Summary: "Emit events",
		Description: "Appends custom events, all or none, in the order given. The same Idempotency-Key and body within 24 h " +
			"gives the first response again. A body of lines is many appends, over one connection for as long as the client likes: " +
			"each line gets a line of the response, in the same order, as soon as it is durable, or a problem, which does not harm the " +
			"others. Lines without a key are appended in their order, those with one side by side. The limit of 1 MiB is each line's; " +
			"a longer one ends the response. A client that sends and reads at once never waits; where the host cannot stream, the response " +
			"comes when the body has ended.",
		Parameters: params{idempotencyKey()},
		Body:       jsonBody(ref("Emission"), emissionExample()),
		Responses:  answers(http.StatusCreated, typeJSON, ref("Emitted")),
	}
	op.Body.Content[typeNDJSON] = &media{Schema: text("Lines of JSON, each an event, an array of events, or an object with idempotencyKey and " +
		"events, such an array. Blank lines are skipped. The header Idempotency-Key is not for this body")}
	op.Responses["200"] = responded(http.StatusOK, typeNDJSON, text("Lines of JSON, for each line of the request an object with eventIds, or a problem"))
	return op
}

// emitRoute is the pattern of the operation.
const emitRoute = "POST /jobscheduler/master/api/event"

// emission is the operation's state.
type emission struct {
	journal Emitter
	flight  flight
}

// emit appends events. This is the most frequent operation, so it reads, parses and renders without reflection.
func (e *emission) emit(x *exchange) error {
	if ofLines(x.r.Header) {
		return e.lines(x)
	}
	b := take()
	defer b.give()
	if err := x.read(b); err != nil {
		return err
	}
	events, err := event.ParseEvents(b.bytes)
	if err != nil {
		return err
	}
	once, leave, err := e.flight.once(x, b.bytes, "")
	if err != nil {
		return err
	}
	defer leave()
	x.sign(events)
	receipt, err := e.journal.Emit(x.r.Context(), events, once)
	if err != nil {
		x.api.metrics.Outcome("emit", string(problemOf(err).Code), 0)
		return err
	}
	x.emitted(b, receipt)
	return nil
}

// sign notes in events who emits them.
func (x *exchange) sign(events []event.Event) {
	for i := range events {
		events[i].By = x.token.Name
	}
}

// emitted responds with the ids, rendered into b; a repeated request gets the same ones.
func (x *exchange) emitted(b *buffer, r journal.Receipt) {
	x.replayed(r.Replayed)
	x.counted(r)
	b.bytes = b.bytes[:0]
	b.ids(r)
	x.json(http.StatusCreated, b.bytes)
}

// counted measures an append.
func (x *exchange) counted(r journal.Receipt) {
	if r.Replayed {
		x.api.metrics.Outcome("emit", "replayed", 0)
	} else {
		x.api.metrics.Outcome("emit", "appended", r.Count)
	}
}

// ids appends the ids of an append.
func (b *buffer) ids(r journal.Receipt) {
	b.bytes = append(b.bytes, `{"eventIds":[`...)
	for i := range r.Count {
		if i > 0 {
			b.bytes = append(b.bytes, ',')
		}
		b.bytes = strconv.AppendInt(b.bytes, int64(r.FirstID)+int64(i), 10)
	}
	b.bytes = append(b.bytes, "]}"...)
}

// maxKey is how many characters an Idempotency-Key may have.
const maxKey = 255

// idempotency returns the request's idempotency, nil if it has no key. Keys are visible ASCII; their scope is the token and the route, with
// the resource that the path names, "" if it names none.
func (x *exchange) idempotency(body []byte, resource string) (*journal.Idempotency, error) {
	values := x.r.Header["Idempotency-Key"]
	if len(values) == 0 {
		return nil, nil
	}
	key := values[0]
	if len(values) > 1 {
		key = "" // no one can say which
	}
	if err := checkKey(inKeyHeader, key); err != nil {
		return nil, err
	}
	scope := x.keyScope()
	if resource != "" {
		scope += " " + resource
	}
	return &journal.Idempotency{Scope: scope, Key: key, Fingerprint: sha256.Sum256(body)}, nil
}

// keyScope returns what the request's keys are scoped to.
func (x *exchange) keyScope() string { return x.token.Name + " " + x.route }

// checkKey returns a 400 for what cannot be a key.
func checkKey(location, key string) error {
	if len(key) < 1 || len(key) > maxKey {
		return invalid(location, "want one key of 1 to %d characters", maxKey)
	}
	for i := range len(key) {
		if key[i] < '!' || key[i] > '~' {
			return invalid(location, "want visible ASCII without spaces")
		}
	}
	return nil
}
