package api

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
)

// This file is POST event with a body of lines: each is an append, and gets a line of the response as soon as it is durable. While
// appends are under way, further lines are read; these go together next. So a client that does not wait for results makes large
// appends, whatever the size of its own.

const (
	linesAhead = 1024    // that are appended together, and that wait meanwhile
	lineChunk  = 1 << 18 // bytes of lines that are appended together; a longer line goes alone

	// Lines of lineUnit bytes or more are read ahead as long as they have at most unitsAhead units together: 4 MiB. Shorter ones count
	// for nothing, since there are at most linesAhead of them.
	lineUnit   = 16 << 10
	unitsAhead = 256
)

// ofLines reports whether the body is lines.
func ofLines(h http.Header) bool {
	said := first(h, "Content-Type")
	if said == typeJSON || said == "" {
		return false
	}
	kind, _, err := mime.ParseMediaType(said)
	return err == nil && kind == typeNDJSON
}

// emitLine is one line of the request: an append.
type emitLine struct {
	text   []byte
	events []event.Event
	once   *journal.Idempotency // nil: without a key

	receipt journal.Receipt
	err     error
}

// emitLines is a request of lines under way.
type emitLines struct {
	*emission
	x       *exchange
	streams bool // results go out while lines come in; otherwise they go together at the end
	whole   bool // the body was read to its end
	out     *buffer
}

// lines appends the lines of the body.
func (e *emission) lines(x *exchange) error {
	if err := unencoded(x.r.Header); err != nil {
		return err
	}
	if len(x.r.Header["Idempotency-Key"]) > 0 {
		return invalid(inKeyHeader, "a body of lines has its keys in the lines")
	}
	l := &emitLines{emission: e, x: x, out: take()}
	defer l.out.give()
	l.streams = x.api.canStream && http.NewResponseController(x).EnableFullDuplex() == nil
	if !l.streams {
		l.run(bufio.NewReaderSize(x.r.Body, chunk))
		x.bytes(http.StatusOK, typeNDJSON, l.out.bytes)
		return nil
	}
	l.stream()
	return nil
}

// stream writes a line for each line until the client ends the body or leaves, or the host is to stop.
func (l *emitLines) stream() {
	x := l.x
	x.waiting(+1)
	defer x.waiting(-1)
	_ = http.NewResponseController(x).SetReadDeadline(time.Time{}) // the body lasts for as long as the client likes
	defer context.AfterFunc(x.api.stopping, l.hangUp)()
	defer context.AfterFunc(x.r.Context(), l.hangUp)()
	h := x.Header()
	h["Content-Type"] = []string{typeNDJSON}
	h.Set("X-Accel-Buffering", "no")
	x.WriteHeader(http.StatusOK)
	if l.push() == nil {
		l.run(bufio.NewReaderSize(x.r.Body, chunk))
	}
	if !l.whole {
		x.last()
	}
}

// hangUp ends reading the body, whatever of it is still to come.
func (l *emitLines) hangUp() { _ = http.NewResponseController(l.x).SetReadDeadline(time.Unix(1, 0)) }

// What is still to come of a body whose reading has ended is taken for so long, and so much of it.
const (
	lingerTime = 500 * time.Millisecond
	lingerSize = 8 << 20
)

// linger takes what is still to come of the body for a while: a client that is cut off while it sends may lose the response that it has
// not read. Then it hangs up, or net/http would wait for the rest.
func (l *emitLines) linger(body io.Reader) {
	_ = http.NewResponseController(l.x).SetReadDeadline(time.Now().Add(lingerTime))
	_, _ = io.CopyN(io.Discard, body, lingerSize)
	l.hangUp()
}

// run reads lines in one goroutine, and appends them in this one.
func (l *emitLines) run(body *bufio.Reader) {
	waiting, over := make(chan *emitLine, linesAhead), make(chan struct{})
	room := make(chan struct{}, unitsAhead)
	var reading sync.WaitGroup
	reading.Go(func() {
		if l.whole = readLines(body, waiting, room, over); !l.whole && l.streams {
			l.linger(body)
		}
	})
	defer reading.Wait() // the body must not be read once the request is over
	defer close(over)
	var next *emitLine
	for {
		batch, left := gathered(next, waiting)
		if len(batch) == 0 {
			return
		}
		next = left
		l.append(batch)
		for _, line := range batch {
			l.render(line)
			for range len(line.text) / lineUnit {
				<-room
			}
		}
		if l.streams && l.push() != nil {
			l.hangUp()
			return
		}
	}
}

// readLines sends the lines of the body that are not blank, until it ends or breaks off. Of a line that is too long it sends
// the refusal, and ends. room takes an element for each unit of a line. It reports whether it has read the whole body.
func readLines(body *bufio.Reader, to chan<- *emitLine, room chan<- struct{}, over <-chan struct{}) (whole bool) {
	defer close(to)
	for {
		text, err := readLine(body)
		_, refused := errors.AsType[*Problem](err)
		if err != nil && !refused && !errors.Is(err, io.EOF) {
			return false // what came of the line may not be all of it
		}
		line := &emitLine{text: text}
		if refused {
			line.err = err
		}
		for range len(text) / lineUnit {
			select {
			case room <- struct{}{}:
			case <-over:
				return false
			}
		}
		if refused || len(text) > 0 {
			select {
			case to <- line:
			case <-over:
				return false
			}
		}
		if err != nil {
			return !refused
		}
	}
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

// gathered returns first and the lines that wait, as many as are appended together; left is one that is not. It waits for a line if
// there is none.
func gathered(first *emitLine, waiting <-chan *emitLine) (batch []*emitLine, left *emitLine) {
	if first == nil {
		first = <-waiting
	}
	if first == nil {
		return nil, nil
	}
	batch = append(batch, first)
	for size := len(first.text); len(batch) < linesAhead; {
		select {
		case line := <-waiting:
			if line == nil {
				return batch, nil
			}
			if size += len(line.text); size > lineChunk {
				return batch, line
			}
			batch = append(batch, line)
		default:
			return batch, nil
		}
	}
	return batch, nil
}

// append appends the lines of a batch: those without a key in one append in their order, those with different keys side by side.
func (l *emitLines) append(batch []*emitLine) {
	var plain []*emitLine
	var byKey map[string][]*emitLine
	for _, line := range batch {
		if line.err == nil {
			line.err = l.parse(line)
			l.x.sign(line.events)
		}
		switch {
		case line.err != nil:
		case line.once != nil:
			if byKey == nil {
				byKey = map[string][]*emitLine{}
			}
			byKey[line.once.Key] = append(byKey[line.once.Key], line)
		default:
			plain = append(plain, line)
		}
	}
	var keyed sync.WaitGroup
	for _, same := range byKey {
		keyed.Go(func() {
			for _, line := range same {
				l.appendOnce(line)
			}
		})
	}
	l.appendPlain(plain)
	keyed.Wait()
}

// appendOnce appends a line with a key.
func (l *emitLines) appendOnce(line *emitLine) {
	leave, err := l.flight.enter(line.once)
	if err != nil {
		line.err = err
		return
	}
	defer leave()
	line.receipt, line.err = l.journal.Emit(l.x.r.Context(), line.events, line.once)
}

// appendPlain appends lines without keys, each wholly or not at all. If the journal refuses them together, each is sent alone.
func (l *emitLines) appendPlain(lines []*emitLine) {
	for len(lines) > 0 {
		n, events := together(lines)
		receipt, err := l.journal.Emit(l.x.r.Context(), events, nil)
		if n > 1 && journal.Refused(err) {
			l.appendPlain(lines[:n/2])
			l.appendPlain(lines[n/2 : n])
		} else {
			for _, line := range lines[:n] {
				line.receipt, line.err = journal.Receipt{FirstID: receipt.FirstID, Count: len(line.events)}, err
				receipt.FirstID += event.ID(len(line.events))
			}
		}
		lines = lines[n:]
	}
}

// together returns how many of the lines are one append, and their events.
func together(lines []*emitLine) (n int, events []event.Event) {
	events = lines[0].events
	for n = 1; n < len(lines) && len(events)+len(lines[n].events) <= event.MaxEvents; n++ {
		events = append(events, lines[n].events...)
	}
	return n, events
}

// parse reads a line: an event, an array of events, or an object with both a key and an array.
func (l *emitLines) parse(line *emitLine) (err error) {
	text := line.text
	if bytes.Contains(text, []byte(`"events"`)) || bytes.Contains(text, []byte(`"idempotencyKey"`)) {
		if keyed, err := l.parseKeyed(line); keyed || err != nil {
			return err
		}
	}
	if text[0] == '[' {
		line.events, err = event.ParseEvents(text)
		return err
	}
	list := take()
	defer list.give()
	list.bytes = append(append(append(list.bytes, '['), text...), ']')
	if line.events, err = event.ParseEvents(list.bytes); err == nil && len(line.events) > 1 {
		return invalid("body", "more than one JSON value")
	}
	return moved(err, "body[0]", "body")
}

// parseKeyed reads a line with a key; keyed is false if it is an event, which may have members of the same names.
func (l *emitLines) parseKeyed(line *emitLine) (keyed bool, err error) {
	value, err := parseBody(line.text)
	if err != nil || value.Kind() != '{' || hasMember(value, "TYPE") {
		return false, err
	}
	var key string
	var list jsontext.Value
	err = readObject("body", value,
		member{name: "idempotencyKey", required: true, read: func(location string, value jsontext.Value) (err error) {
			if key, err = readText(location, value); err == nil {
				err = checkKey(location, key)
			}
			return err
		}},
		member{name: "events", required: true, read: func(_ string, value jsontext.Value) error {
			list = value.Clone()
			return nil
		}})
	if err != nil {
		return true, err
	}
	line.once = &journal.Idempotency{Scope: l.x.keyScope(), Key: key, Fingerprint: sha256.Sum256(list)}
	line.events, err = event.ParseEvents(list)
	return true, moved(err, "body", "body.events")
}

// hasMember reports whether an object, which is well formed, has a member of that name.
func hasMember(object jsontext.Value, name string) bool {
	d := jsontext.NewDecoder(bytes.NewBuffer(object))
	_, _ = d.ReadToken()
	for d.PeekKind() == '"' {
		if token, _ := d.ReadToken(); token.String() == name {
			return true
		}
		_ = d.SkipValue()
	}
	return false
}

// moved returns a refusal of events with its locations below another one.
func moved(err error, from, to string) error {
	refused, ok := errors.AsType[*event.Error](err)
	if !ok {
		return err
	}
	there := &event.Error{Reason: refused.Reason}
	for _, p := range refused.Problems {
		if rest, below := strings.CutPrefix(p.Location, from); below {
			p.Location = to + rest
		}
		there.Problems = append(there.Problems, p)
	}
	return there
}

// render appends a line of the response.
func (l *emitLines) render(line *emitLine) {
	if line.err == nil {
		l.x.counted(line.receipt)
		l.out.ids(line.receipt)
	} else {
		l.refusal(line.err)
	}
	l.out.bytes = append(l.out.bytes, '\n')
}

func (l *emitLines) refusal(err error) {
	p := problemOf(err)
	p.RequestID = l.x.id
	l.x.api.metrics.Outcome("emit", string(p.Code), 0)
	if p.Status >= http.StatusInternalServerError && !errors.Is(err, journal.ErrClosed) && !l.x.left(err) {
		l.x.api.log.Error("line failed", slog.String("request_id", l.x.id), slog.String("route", l.x.route), slog.Any("error", err))
	}
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // a struct of strings and numbers
	}
	l.out.bytes = append(l.out.bytes, text...)
}

// push sends what is rendered. The error says that the client is gone, or does not read.
func (l *emitLines) push() error {
	control := l.x.unhurried()
	if len(l.out.bytes) > 0 {
		if _, err := l.x.Write(l.out.bytes); err != nil {
			return err
		}
		l.out.bytes = l.out.bytes[:0]
	}
	return control.Flush()
}
