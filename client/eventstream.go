package client

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/millrace/millrace/shared/event"
)

// This file reads events from a response that goes on while they come, as server-sent events (WHATWG HTML, 9.2). Their ids tell a
// follower also how far the server has read where nothing matched.

const (
	typeSSE = "text/event-stream"

	// silence is how long a stream may be silent before it counts as lost: three times the pause between the server's signs of life.
	silence = 45 * time.Second

	// stepEvents is how many events one step of a stream has at most.
	stepEvents = 4096
)

// heard is what [Client.listen] returns.
type heard struct {
	stream *eventStream // nil: the server has responded with the answer instead
	answer Answer
	brief  bool // the server has not waited, since the client pauses
}

// eventStream is such a response under way.
type eventStream struct {
	query  Query
	body   io.Closer
	in     *bufio.Reader
	cancel context.CancelFunc
	lost   *time.Timer // cancels a request whose stream is silent

	last event.ID // all up to here was read
	torn bool     // the stream has said that it is torn
}

// listen asks for what q selects in a response that goes on.
func (c *Client) listen(outer context.Context, q Query) (h heard, err error) {
	ctx, cancel := context.WithCancel(outer)
	ask := q.call()
	ask.pauses = true
	lost := time.AfterFunc(q.Wait+attemptTime, cancel)
	defer func() {
		if h.stream == nil {
			lost.Stop()
			cancel()
		}
	}()
	request, err := c.request(ctx, ask)
	if err != nil {
		return h, err
	}
	request.Header.Set("Accept", typeSSE+", application/json;q=0.1")
	response, err := c.http.Do(request)
	if err != nil {
		c.dropIdle(outer, ctx)
		return h, err
	}
	c.answered.Store(true)
	h.brief = toPause(response.Header)
	if kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type")); err == nil && kind == typeSSE && response.StatusCode == http.StatusOK {
		lost.Reset(silence)
		h.stream = &eventStream{query: q, body: response.Body, in: bufio.NewReaderSize(response.Body, 64<<10), cancel: cancel, lost: lost, last: q.After}
		return h, nil
	}
	defer response.Body.Close()
	body, err := readBody(response)
	if err != nil {
		c.dropIdle(outer, ctx)
		return h, fmt.Errorf("%w: %w", errBrokenOff, err)
	}
	if response.StatusCode/100 != 2 {
		return h, failure(response, body)
	}
	h.answer, err = decodeAnswer(body, q)
	return h, err
}

// close ends the request.
func (s *eventStream) close() {
	s.lost.Stop()
	s.cancel()
	_ = s.body.Close()
}

// next returns what has come, after waiting until something has. The error is io.EOF where the stream has ended as it should.
func (s *eventStream) next() (Answer, error) {
	s.lost.Reset(silence)
	a := Answer{Last: s.last, Torn: s.torn}
	for before := s.last; !s.torn; {
		err := s.message(&a)
		a.Last, a.Torn = s.last, s.torn && len(a.Events) == 0
		if err != nil && len(a.Events) == 0 {
			return a, err
		}
		if err != nil || len(a.Events) == stepEvents || s.in.Buffered() == 0 && s.last != before {
			break // the next call returns the error, or that the stream is torn
		}
	}
	return a, nil
}

// message reads the lines up to the next blank one. What it does not read whole does not count.
func (s *eventStream) message(a *Answer) error {
	var id event.ID
	var data []byte
	torn := false
	for {
		line, err := s.line()
		if err != nil {
			return err
		}
		name, value, _ := bytes.Cut(line, []byte(": "))
		switch string(name) {
		case "":
			if len(line) > 0 {
				continue // a comment
			}
			return s.take(a, id, data, torn)
		case "id":
			n, err := strconv.ParseInt(string(value), 10, 64)
			if err != nil {
				return fmt.Errorf("answer: %q is not an EventId", value)
			}
			id = event.ID(n)
		case "data":
			data = bytes.Clone(value)
		case "event":
			torn = string(value) == "torn"
		}
	}
}

// take adds a message to what has come.
func (s *eventStream) take(a *Answer, id event.ID, data []byte, torn bool) error {
	s.torn = torn
	if len(data) > 0 && !torn {
		e, ok := event.ScanEvent(data)
		if !ok {
			var err error
			if e, err = event.ParseEvent(data); err != nil {
				return fmt.Errorf("answer: %w", err)
			}
		}
		if err := s.query.complete(&e); err != nil {
			return err
		}
		if e.ID > s.last {
			a.Events = append(a.Events, e)
		}
	}
	s.last = max(s.last, id)
	return nil
}

// line returns the next line, until the next call.
func (s *eventStream) line() ([]byte, error) {
	if s.in.Buffered() == 0 {
		s.lost.Reset(silence)
	}
	line, err := s.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		var rest []byte
		line = bytes.Clone(line)
		rest, err = s.in.ReadBytes('\n')
		line = append(line, rest...)
	}
	switch {
	case err == nil:
		return bytes.TrimRight(line, "\r\n"), nil
	case errors.Is(err, io.EOF) && len(line) == 0:
		return nil, io.EOF
	}
	return nil, fmt.Errorf("%w: %w", errBrokenOff, err)
}
