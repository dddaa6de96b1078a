package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
)

// The media types of event streams.
const (
	typeSSE    = "text/event-stream"
	typeNDJSON = "application/x-ndjson"
)

const (
	heartbeat    = 15 * time.Second // of silence, after which a stream shows that it lives
	writeTimeout = 30 * time.Second // for a client to take what was written
	chunk        = 64 << 10         // bytes of events that a stream renders before it sends them: the memory of a slow follower
)

// framing is how events lie in a stream. Each method appends to dst.
type framing interface {
	event(dst []byte, e *event.Event, withKey bool) []byte
	torn(dst []byte, at event.ID) []byte
	// beat shows that the stream lives. If passed is not 0, all up to that id has been read, and the filter took none of it.
	beat(dst []byte, passed event.ID) []byte
}

// sse frames server-sent events (WHATWG HTML, 9.2): id is the EventId, data the event.
type sse struct{}

func (sse) event(dst []byte, e *event.Event, withKey bool) []byte {
	dst = append(dst, "id: "...)
	dst = strconv.AppendInt(dst, int64(e.ID), 10)
	dst = append(dst, "\ndata: "...)
	dst = e.AppendJSON(dst, withKey)
	return append(dst, "\n\n"...)
}

func (sse) torn(dst []byte, at event.ID) []byte {
	dst = append(dst, "event: torn\ndata: "...)
	seq := event.Seq{Kind: event.Torn, EventID: at}
	dst = seq.AppendJSON(dst, true)
	return append(dst, "\n\n"...)
}

// beat appends a comment. An id without data is no event, but moves the client's Last-Event-ID on, so that a client whose
// filter takes little does not become torn.
func (sse) beat(dst []byte, passed event.ID) []byte {
	dst = append(dst, ":\n"...)
	if passed != 0 {
		dst = append(dst, "id: "...)
		dst = strconv.AppendInt(dst, int64(passed), 10)
		dst = append(dst, '\n')
	}
	return append(dst, '\n')
}

// ndjson frames one event a line; blank lines are heartbeats.
type ndjson struct{}

func (ndjson) event(dst []byte, e *event.Event, withKey bool) []byte {
	return append(e.AppendJSON(dst, withKey), '\n')
}

func (ndjson) torn(dst []byte, at event.ID) []byte {
	seq := event.Seq{Kind: event.Torn, EventID: at}
	return append(seq.AppendJSON(dst, true), '\n')
}

func (ndjson) beat(dst []byte, _ event.ID) []byte { return append(dst, '\n') }

// outflow is one follower's stream under way.
type outflow struct {
	x       *exchange
	journal Reader
	frames  framing
	withKey bool
	left    int      // events still wanted; negative: no bound
	seen    event.ID // the client knows that all was read up to here
	buffer  *buffer  // rendered, not sent; nil between two sends, so that a follower that waits keeps no memory
}

// stream responds with events as they come or, where the host cannot, with those that are there.
func (x *exchange) stream(j Reader, q *question, form string, frames framing) error {
	if q.limit < 0 && form == typeSSE {
		return invalid("query.limit", "an event stream goes forward: its client would go on from the last id, the oldest")
	}
	s := &outflow{x: x, journal: j, frames: frames, withKey: !q.filter.OmitsKey(), left: -1, seen: q.after}
	if q.limit > 0 {
		s.left = q.limit
	}
	if atOnce := q.limit < 0 || q.bounded && q.timeout == 0; atOnce || !x.api.canStream {
		return s.finite(q, form)
	}
	s.begin(form)
	return s.follow(q)
}

func (s *outflow) begin(form string) {
	h := s.x.Header()
	h.Set("Content-Type", form)
	h.Set("X-Accel-Buffering", "no") // proxies after nginx would hold events back
	s.x.WriteHeader(http.StatusOK)
}

// follow goes on until the client leaves, the timeout is over, the limit is reached or the stream is torn.
func (s *outflow) follow(q *question) error {
	ctx := s.x.r.Context()
	ask := q.request(s.x)
	ask.Timeout, ask.Limit = 0, 0 // the stream keeps both itself
	ask.MaxBytes = min(ask.MaxBytes, chunk)
	s.x.waiting(+1)
	defer s.x.waiting(-1)
	if s.push() != nil { // the client shall know at once that it is listening
		return nil
	}
	if q.bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, q.timeout)
		defer cancel()
		if more, err := s.atOnce(&ask); err != nil || !more {
			return err
		}
	}
	for answer, err := range s.journal.Follow(ctx, ask, heartbeat) {
		if err != nil {
			s.leave(&answer)
			return over(ctx, err)
		}
		_ = s.x.measured("follow", &answer, nil)
		if more := s.add(&answer); s.push() != nil || !more {
			return nil
		}
	}
	return nil
}

// leave tells a client whose time is up how far it has come where nothing matched, so that it goes on from there.
func (s *outflow) leave(answer *journal.Answer) {
	if len(answer.Events) > 0 {
		return // perhaps they were not sent
	}
	if passed := s.passed(answer.LastEventID); passed != 0 && s.x.r.Context().Err() == nil {
		out := s.out()
		*out = s.frames.beat(*out, passed)
		_ = s.push() // the client has left; there is nobody to tell
	}
}

// atOnce sends what is there already, however short the time and however slow the store; ask then asks for what comes after it.
func (s *outflow) atOnce(ask *journal.Request) (more bool, err error) {
	answer, err := s.journal.ReadAfter(s.x.r.Context(), *ask)
	if err != nil {
		return false, over(s.x.r.Context(), err)
	}
	n := len(answer.Events)
	if n == 0 && !answer.Torn {
		ask.After = answer.LastEventID
		return true, nil
	}
	_ = s.x.measured("follow", &answer, nil)
	more = s.add(&answer)
	if s.push() != nil || !more {
		return false, nil
	}
	ask.After = answer.Events[n-1].ID
	return true, nil
}

// over returns nil if err only says that the stream is over: its time is up, its client has left, or the journal is
// closed because the process ends. The client comes back and goes on.
func over(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, journal.ErrClosed) {
		return nil
	}
	return err
}

// finite responds with what is there after a long poll. Without a timeout it waits as long as the host lets it, as an
// endless stream would.
func (s *outflow) finite(q *question, form string) error {
	if !q.bounded {
		q.timeout = s.x.maxWait()
	}
	answer, err := s.x.poll(s.journal, q)
	if err != nil {
		return err
	}
	s.begin(form)
	s.add(&answer)
	_ = s.push() // the client has left; there is nobody to tell
	return nil
}

// add renders what was read; false says that the stream ends with it.
func (s *outflow) add(answer *journal.Answer) (more bool) {
	out := s.out()
	if answer.Torn {
		*out = s.frames.torn(*out, s.journal.Stamp(0))
		return false
	}
	for i := range answer.Events {
		if s.left == 0 {
			break
		}
		s.left--
		*out = s.frames.event(*out, &answer.Events[i], s.withKey)
		s.seen = answer.Events[i].ID
	}
	if len(answer.Events) == 0 {
		*out = s.frames.beat(*out, s.passed(answer.LastEventID))
	}
	return s.left != 0
}

// out returns the memory to render into.
func (s *outflow) out() *[]byte {
	if s.buffer == nil {
		s.buffer = take()
	}
	return &s.buffer.bytes
}

// passed returns the id if the client does not know it yet, 0 otherwise.
func (s *outflow) passed(id event.ID) event.ID {
	if id <= s.seen {
		return 0
	}
	s.seen = id
	return id
}

// push sends what is rendered. The error says that the client is gone, or took nothing for writeTimeout: its stream is cut
// off without a proper end, so that the client knows to come back and to go on from the last id.
func (s *outflow) push() error {
	out := s.x.unhurried()
	if b := s.buffer; b != nil {
		s.buffer = nil
		defer b.give()
		if _, err := s.x.Write(b.bytes); err != nil {
			return err
		}
	}
	if err := out.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// unhurried gives the response writeTimeout from now on: the server's WriteTimeout counts from the request and may be over.
// Hosts without deadlines have limits of their own.
func (x *exchange) unhurried() *http.ResponseController {
	out := http.NewResponseController(x)
	_ = out.SetWriteDeadline(time.Now().Add(writeTimeout))
	return out
}

// framingOf returns how a stream of the media type is framed; nil if it is no stream's.
func framingOf(kind string) framing {
	switch kind {
	case typeSSE:
		return sse{}
	case typeNDJSON:
		return ndjson{}
	}
	return nil
}
