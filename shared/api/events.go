package api

import (
	"context"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
)

// Reader reads events and snapshots; a [journal.Journal] is one.
type Reader interface {
	ReadAfter(ctx context.Context, r journal.Request) (journal.Answer, error)
	ReadNewest(ctx context.Context, r journal.Request) (journal.Answer, error)
	Follow(ctx context.Context, r journal.Request, idle time.Duration) iter.Seq2[journal.Answer, error]
	Lineage(ctx context.Context, id event.ID, maxBytes int) (journal.Lineage, error)
	SnapshotOf(ctx context.Context, fold string, p journal.Part, each func(key string, value []byte)) (event.ID, error)
	SnapshotAt(ctx context.Context, fold string, at event.ID, p journal.Part, each func(key string, value []byte)) error
	Stamp(atLeast event.ID) event.ID
}

// journalReading is what the operations that read the journal share.
type journalReading struct{ journal Reader }

func describeEvents() *operation {
	return &operation{
		ID: "events", Tags: []string{"Journal"}, Summary: "Events of all kinds", Description: aboutEvents,
		Parameters: eventParams(nil, false), Responses: eventAnswers(), failures: []int{404},
	}
}

func (r *journalReading) events(x *exchange) error {
	q, err := x.ask(event.Any)
	if err != nil {
		return err
	}
	return x.answered(r.journal, q)
}

// question is what a request wants to know.
type question struct {
	filter  event.Filter
	after   event.ID
	started bool // after was given
	limit   int  // 0: none; negative: the newest first
	timeout time.Duration
	bounded bool // a timeout was given
	causes  bool // with what brought each event about
	at      event.ID
	past    bool     // at was given
	until   event.ID // of the newest events: up to this one; 0: all
}

// ask reads what the query asks for; otherwise is the default of the parameter return, "" if it must be given.
func (x *exchange) ask(otherwise string) (*question, error) {
	query, err := x.query()
	if err != nil {
		return nil, err
	}
	q := &question{filter: event.Filter{Paths: event.AllPaths()}}
	if q.filter.Types, err = query.selection(otherwise); err != nil {
		return nil, err
	}
	if q.after, q.started, err = query.id("after"); err != nil {
		return nil, err
	}
	if q.at, q.past, err = query.id("at"); err != nil {
		return nil, err
	}
	if q.limit, err = query.limit(); err != nil {
		return nil, err
	}
	var bounded bool
	if q.until, bounded, err = query.id("until"); err != nil {
		return nil, err
	}
	if bounded && (q.limit >= 0 || q.until == 0) {
		return nil, invalid("query.until", "want an EventId above 0, with a negative limit: it is for the newest events up to that one")
	}
	if q.timeout, q.bounded, err = query.timeout(x.maxWait()); err != nil {
		return nil, err
	}
	if q.causes, err = query.with(); err != nil {
		return nil, err
	}
	return q, nil
}

// request is the question as the journal understands it.
func (q *question) request(x *exchange) journal.Request {
	return journal.Request{
		After: q.after, Match: q.filter.Match, Limit: max(q.limit, -q.limit), MaxBytes: x.api.maxAnswer, Timeout: q.timeout,
		Causes: q.causes, Until: q.until,
	}
}

// answer reads the events that q asks for and responds in the form that the client prefers.
func (x *exchange) answer(j Reader, q *question) error {
	form, err := x.form(q)
	if err != nil {
		return err
	}
	if !q.started && q.limit >= 0 {
		return invalid("query.after", "is needed: the eventId of a snapshot or of the last event read; 0 is the beginning")
	}
	if x.r.Method == http.MethodHead {
		return x.head(form)
	}
	if frames := framingOf(form); frames != nil {
		return x.stream(j, q, form, frames)
	}
	return x.once(j, q, form)
}

// form returns the media type in which the client prefers events. In another than JSON it may say where it goes on by a header.
func (x *exchange) form(q *question) (string, error) {
	form := preferred(x.r.Header, typeJSON, typeSSE, typeNDJSON, typeBatch)
	if form == typeJSON {
		return form, nil
	}
	return form, q.resume(x.r.Header)
}

// resume reads the last id that the client has seen from the header Last-Event-ID; it is newer than the after in the
// URL with which the stream was first opened.
func (q *question) resume(h http.Header) (err error) {
	if seen := first(h, "Last-Event-Id"); seen != "" {
		q.started = true
		q.after, err = parseID("header.Last-Event-ID", seen)
	}
	return err
}

// head responds as a GET does, without the events: the client would not get them, so there is nothing to wait for.
func (x *exchange) head(form string) error {
	x.Header()["Content-Type"] = []string{form}
	x.WriteHeader(http.StatusOK)
	return nil
}

// once responds with what is there, after waiting for the first event as long as q says.
func (x *exchange) once(j Reader, q *question, form string) error {
	answer, err := x.poll(j, q)
	if err == nil {
		x.whole(j, q, form, &answer)
	}
	return err
}

// whole responds with what was read, in JSON or as a batch.
func (x *exchange) whole(j Reader, q *question, form string, answer *journal.Answer) {
	b := take()
	defer b.give()
	b.bytes = slices.Grow(b.bytes, sizeOf(answer.Events)+aroundEvents)
	stamp := j.Stamp(last(answer, q.after))
	if form == typeBatch {
		x.Header().Set("Last-Event-ID", strconv.FormatInt(int64(answer.LastEventID), 10))
		b.bytes = appendBatch(b.bytes, answer, stamp, !q.filter.OmitsKey())
	} else {
		seq := seqOf(answer, stamp)
		b.bytes = seq.AppendJSON(b.bytes, !q.filter.OmitsKey())
	}
	x.bytes(http.StatusOK, form, b.bytes)
}

// aroundEvents is how many bytes a response has at most beside its events.
const aroundEvents = 256

// sizeOf returns about how many bytes events have as JSON.
func sizeOf(events []event.Event) (size int) {
	for i := range events {
		size += events[i].Size()
	}
	return size
}

// poll reads once, waiting for the first event as long as q says.
func (x *exchange) poll(j Reader, q *question) (journal.Answer, error) {
	ask := q.request(x)
	if q.limit < 0 {
		answer, err := j.ReadNewest(x.r.Context(), ask)
		return answer, x.measured("read", &answer, err)
	}
	if ask.Timeout > 0 {
		x.waiting(+1)
		defer x.waiting(-1)
	}
	answer, err := j.ReadAfter(x.r.Context(), ask)
	return answer, x.measured("read", &answer, err)
}

// measured counts what came of reading, and returns err.
func (x *exchange) measured(operation string, answer *journal.Answer, err error) error {
	outcome := "events"
	switch {
	case err != nil:
		outcome = string(problemOf(err).Code)
	case answer.Torn:
		outcome = "torn"
	case len(answer.Events) == 0:
		outcome = "empty"
	}
	x.api.metrics.Outcome(operation, outcome, len(answer.Events))
	return err
}

// waiting notes that the request takes long by intention, and counts it among the followers.
func (x *exchange) waiting(change int) {
	x.patient = true
	x.api.metrics.Following(change)
	x.unhurried()
}

// seqOf returns what was read as NonEmpty, Empty or Torn, as in JobScheduler's event API.
func seqOf(answer *journal.Answer, stamp event.ID) event.Seq {
	switch {
	case answer.Torn:
		return event.Seq{Kind: event.Torn, EventID: stamp}
	case len(answer.Events) == 0:
		return event.Seq{Kind: event.Empty, EventID: stamp, LastEventID: answer.LastEventID}
	default:
		return event.Seq{Kind: event.NonEmpty, EventID: stamp, Events: answer.Events}
	}
}

// last returns the newest id in what was read, below which its stamp must not be; 0 if there is none but the
// after of the request.
func last(answer *journal.Answer, after event.ID) event.ID {
	newest := event.ID(0)
	if answer.LastEventID > after {
		newest = answer.LastEventID
	}
	if n := len(answer.Events); n > 0 {
		newest = max(newest, answer.Events[0].ID, answer.Events[n-1].ID)
	}
	return newest
}
