package api

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"
)

// This file is what bodies of lines have in common: each line is as a request, and gets a line of the response. Where the host streams,
// both directions go on for as long as the client likes. So a client that calls the same operation again and again pays for the
// request once.

// ofLines reports whether the body is lines.
func ofLines(h http.Header) bool {
	said := first(h, "Content-Type")
	if said == typeJSON || said == "" {
		return false
	}
	kind, _, err := mime.ParseMediaType(said)
	return err == nil && kind == typeNDJSON
}

// lineStream is a request of lines under way.
type lineStream struct {
	x       *exchange
	streams bool // results go out while lines come in; otherwise they go together at the end
	whole   bool // the body was read to its end
	out     buffer
}

// serve responds by what run makes of the body.
func (l *lineStream) serve(run func(body *bufio.Reader)) error {
	x := l.x
	if err := unencoded(x.r.Header); err != nil {
		return err
	}
	if len(x.r.Header["Idempotency-Key"]) > 0 {
		return invalid(inKeyHeader, "a body of lines has its keys in the lines")
	}
	x.lines = true
	l.streams = x.api.canStream && http.NewResponseController(x).EnableFullDuplex() == nil
	if !l.streams {
		run(bufio.NewReaderSize(x.r.Body, chunk))
		x.bytes(http.StatusOK, typeNDJSON, l.out.bytes)
		return nil
	}
	l.stream(run)
	return nil
}

// stream writes a line for each line until the client ends the body or leaves, or the host is to stop.
func (l *lineStream) stream(run func(body *bufio.Reader)) {
	x := l.x
	x.patient = true
	_ = http.NewResponseController(x).SetReadDeadline(time.Time{}) // the body lasts for as long as the client likes
	defer context.AfterFunc(x.api.stopping, l.hangUp)()
	defer context.AfterFunc(x.r.Context(), l.hangUp)()
	defer func() {
		if !l.whole { // or net/http would wait for the rest of the body, after a panic too
			l.hangUp()
		}
	}()
	// net/http tells a client that waits to send its body to go on at the first read, but no more once the response has begun. What else
	// a client may expect it refuses.
	if first(x.r.Header, "Expect") != "" && x.r.ProtoAtLeast(1, 1) {
		x.WriteHeader(http.StatusContinue)
	}
	h := x.Header()
	h["Content-Type"] = []string{typeNDJSON}
	h.Set("X-Accel-Buffering", "no")
	x.WriteHeader(http.StatusOK)
	if l.push() == nil {
		run(bufio.NewReaderSize(x.r.Body, chunk))
	}
	x.unhurried() // the end is written too, however long after the last result
	if !l.whole {
		x.last()
	}
}

// push sends what is rendered. The error says that the client is gone, or does not read.
func (l *lineStream) push() error {
	control := l.x.unhurried()
	if len(l.out.bytes) > 0 {
		if _, err := l.x.Write(l.out.bytes); err != nil {
			return err
		}
		if l.out.bytes = l.out.bytes[:0]; cap(l.out.bytes) > chunk {
			l.out.bytes = nil // the request may be idle for long
		}
	}
	return control.Flush()
}

// hangUp ends reading the body, whatever of it is still to come.
func (l *lineStream) hangUp() { _ = http.NewResponseController(l.x).SetReadDeadline(time.Unix(1, 0)) }

// What is still to come of a body whose reading has ended is taken for so long, and so much of it. The end of a response of lines waits for
// that, and so for less long.
const (
	lingerTime  = 500 * time.Millisecond
	refusedTime = 5 * time.Second
	lingerSize  = 16 << 20
)

// linger takes what is still to come of the body for a while: a client that is cut off while it sends may lose the response that it has
// not read. Then it hangs up, or net/http would wait for the rest.
func (l *lineStream) linger(body io.Reader) {
	_ = http.NewResponseController(l.x).SetReadDeadline(time.Now().Add(lingerTime))
	_, _ = io.CopyN(io.Discard, body, lingerSize)
	l.hangUp()
}

// readLine returns the next line without spaces around it. The error is io.EOF with the last one, a 413 if it is too long.
func readLine(body *bufio.Reader) (line []byte, err error) {
	for {
		part, err := body.ReadSlice('\n')
		if len(line)+len(part) > maxBody+1 { // the end of the line does not count
			return nil, tooLarge()
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.Trim(line, " \t\r\n"), err
		}
	}
}

// lineRead is a line of the body, or why there is none.
type lineRead struct {
	text []byte
	err  error
}

// refusal reports whether the client is to be told of an error.
func refusal(err error) bool {
	_, is := errors.AsType[*Problem](err)
	return is
}

// plainlyKeyed takes a line apart that is written as {"idempotencyKey":"KEY","NAME":VALUE}, without spaces and escapes, in so far as the
// value is valid JSON, which is left to the caller. ok is false for any other line, which may say the same.
func plainlyKeyed(line []byte, name string) (key string, value []byte, ok bool) {
	rest, ok := bytes.CutPrefix(line, []byte(`{"idempotencyKey":"`))
	if !ok {
		return "", nil, false
	}
	end := bytes.IndexByte(rest, '"')
	if end < 0 || bytes.IndexByte(rest[:end], '\\') >= 0 || checkKey("", string(rest[:end])) != nil {
		return "", nil, false
	}
	key = string(rest[:end])
	value, ok = bytes.CutPrefix(rest[end:], []byte(`","`+name+`":`))
	if !ok || len(value) < 2 || value[len(value)-1] != '}' {
		return "", nil, false
	}
	return key, bytes.Trim(value[:len(value)-1], " \t\r\n"), true
}

// lineSource is the lines of a body, of which the first may have been read already.
type lineSource struct {
	body  *bufio.Reader
	first *lineRead // nil once it is taken
}

// next returns the next line, as readLine does.
func (s *lineSource) next() (line []byte, err error) {
	if first := s.first; first != nil {
		s.first = nil
		return first.text, first.err
	}
	return readLine(s.body)
}
