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
	lineStream
	ctx context.Context // of appends
}

// lines appends the lines of the body.
func (e *emission) lines(x *exchange) error {
	// What has come whole is appended, though the client may send no more: net/http takes that for its leaving, as it does that the
	// reading of the body is ended here.
	l := &emitLines{emission: e, lineStream: lineStream{x: x}, ctx: context.WithoutCancel(x.r.Context())}
	return l.serve(l.run)
}

// run appends each line before it reads the next, as long as the client waits for results; from when it does not, lines are read while
// others are appended.
func (l *emitLines) run(body *bufio.Reader) {
	for l.streams {
		line, err := readLine(body)
		if err != nil || body.Buffered() > 0 {
			l.runAhead(&lineSource{body, &lineRead{line, err}})
			return
		}
		if len(line) == 0 {
			continue
		}
		one := &emitLine{text: line}
		l.append([]*emitLine{one})
		if l.render(one); l.push() != nil {
			return
		}
	}
	l.runAhead(&lineSource{body: body})
}

// runAhead reads lines in one goroutine, and appends them in this one.
func (l *emitLines) runAhead(lines *lineSource) {
	waiting, over := make(chan *emitLine, linesAhead), make(chan struct{})
	room := make(chan struct{}, unitsAhead)
	var reading sync.WaitGroup
	reading.Go(func() {
		if l.whole = readLines(lines, waiting, room, over); !l.whole && l.streams {
			l.linger(lines.body)
		}
	})
	defer reading.Wait() // the body must not be read once the request is over
	defer close(over)
	broken := true
	defer func() {
		if broken { // by the client, or a panic: the reading must not wait for more
			l.hangUp()
		}
	}()
	var next *emitLine
	for {
		batch, left := gathered(next, waiting)
		if len(batch) == 0 {
			broken = false
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
			return
		}
	}
}

// readLines sends the lines of the body that are not blank, until it ends or breaks off. Of a line that is too long it sends
// the refusal, and ends. room takes an element for each unit of a line. It reports whether it has read the whole body.
func readLines(lines *lineSource, to chan<- *emitLine, room chan<- struct{}, over <-chan struct{}) (whole bool) {
	defer close(to)
	for {
		text, err := lines.next()
		refused := refusal(err)
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
	began := time.Now()
	defer l.measure(batch, began)
	var plain []*emitLine
	var byKey map[string][]*emitLine
	refused := l.x.demandAnew()
	for _, line := range batch {
		switch {
		case line.err != nil:
		case refused != nil:
			line.err = refused
		default:
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
	if len(plain) == 0 && len(byKey) == 1 { // which a client does that waits for each result
		for _, same := range byKey {
			l.appendOnces(same)
		}
		return
	}
	var keyed sync.WaitGroup
	for _, same := range byKey {
		keyed.Go(func() { l.appendOnces(same) })
	}
	l.appendPlain(plain)
	keyed.Wait()
}

// measure measures the lines of a batch as requests.
func (l *emitLines) measure(batch []*emitLine, began time.Time) {
	took := time.Since(began)
	for _, line := range batch {
		status := http.StatusCreated
		if line.err != nil {
			status = problemOf(line.err).Status
		}
		l.x.api.metrics.Request(l.x.name(), status, took)
	}
}

// appendOnces appends lines with the same key, one after the other.
func (l *emitLines) appendOnces(same []*emitLine) {
	for _, line := range same {
		l.appendOnce(line)
	}
}

// appendOnce appends a line with a key.
func (l *emitLines) appendOnce(line *emitLine) {
	leave, err := l.flight.enter(line.once)
	if err != nil {
		line.err = err
		return
	}
	defer leave()
	line.receipt, line.err = l.journal.Emit(l.ctx, line.events, line.once)
}

// appendPlain appends lines without keys, each wholly or not at all. If the journal refuses them together, each is sent alone.
func (l *emitLines) appendPlain(lines []*emitLine) {
	for len(lines) > 0 {
		n, events := together(lines)
		receipt, err := l.journal.Emit(l.ctx, events, nil)
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
	if key, list, ok := plainlyKeyed(text, "events"); ok {
		if line.events, err = event.ParseEvents(list); err == nil {
			line.once = &journal.Idempotency{Scope: l.x.keyScope(), Key: key, Fingerprint: sha256.Sum256(list)}
			return nil
		}
	}
	if text[0] == '{' && (bytes.Contains(text, []byte(`"events"`)) || bytes.Contains(text, []byte(`"idempotencyKey"`))) {
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
	p.inLine()
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
