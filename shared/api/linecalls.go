package api

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// byLine is an operation that also takes a body of lines. Each is what the body of a request would be, or an object of its
// idempotencyKey and its body, and is served as that request would be, one after the other; its line of the response is the body of
// that response.
func byLine(handle func(*exchange) error) func(*exchange) error {
	return func(x *exchange) error {
		if !ofLines(x.r.Header) {
			return handle(x)
		}
		l := &lineCalls{lineStream: lineStream{x: x}, handle: handle}
		return l.serve(l.run)
	}
}

// aboutLines is what a client is told of such an operation.
const aboutLines = "\n\nA body of lines (application/x-ndjson) is many of these requests over one connection, for as long as the client " +
	"likes. Each line is what the body of a request would be, or an object of its idempotencyKey and its body. They are served one after " +
	"the other, and each gets a line of the response: the body of its response, or a problem, which does not harm the others. The limit of " +
	"1 MiB is each line's; a longer one ends the response. Where the host cannot stream, the response comes when the body has ended."

// byLines describes an operation as one of lines too.
func byLines(op *operation) *operation {
	op.Description += aboutLines
	op.Body.Content[typeNDJSON] = &media{Schema: text("Lines of JSON, each the body of a request, or an object with idempotencyKey and body. Blank lines are skipped. The header Idempotency-Key is not for this body")}
	lines := text("Lines of JSON, for each line of the request the body of its response, or a problem")
	if op.Responses["200"] == nil {
		op.Responses["200"] = responded(http.StatusOK, typeNDJSON, lines)
	} else {
		op.Responses["200"].Content[typeNDJSON] = &media{Schema: lines}
	}
	return op
}

// lineCalls is a request of lines, each of which is a call.
type lineCalls struct {
	lineStream
	handle func(*exchange) error
	header http.Header    // of each call; those with a key have a copy
	body   *bufio.Reader  // of the request
	ahead  chan *lineRead // has the next line once it has come, while it is waited for beside a call; else nil

	ctx   context.Context // of each call
	leave context.CancelFunc
}

// run serves lines until there are no more.
func (l *lineCalls) run(body *bufio.Reader) {
	l.body, l.header = body, maps.Clone(l.x.r.Header)
	l.header["Content-Type"] = []string{typeJSON}
	l.ctx, l.leave = context.WithCancel(l.x.r.Context())
	defer l.leave()
	defer l.endReading()
	for {
		line := l.next()
		if len(line.text) > 0 || refusal(line.err) {
			l.call(line)
			if l.streams && l.push() != nil {
				break
			}
		}
		if line.err != nil {
			l.whole = errors.Is(line.err, io.EOF)
			break
		}
	}
}

// endReading ends reading the body, which must not be read once the request is over, however that ends.
func (l *lineCalls) endReading() {
	switch {
	case l.whole || !l.streams:
	case l.ahead != nil:
		l.hangUp()
		<-l.ahead
	default:
		l.linger(l.body)
	}
}

// next returns the next line.
func (l *lineCalls) next() *lineRead {
	if l.ahead != nil {
		line := <-l.ahead
		l.ahead = nil
		return line
	}
	return l.read()
}

// read reads a line. What came of one that breaks off counts for nothing.
func (l *lineCalls) read() *lineRead {
	text, err := readLine(l.body)
	if err != nil && !errors.Is(err, io.EOF) {
		text = nil
	}
	return &lineRead{text, err}
}

// watch waits for the next line while a call does, so that this ends when the client leaves, as a request would.
func (l *lineCalls) watch() {
	if !l.streams || l.ahead != nil {
		return
	}
	ahead := make(chan *lineRead, 1)
	l.ahead = ahead
	go func() {
		line := l.read()
		if line.err != nil && !errors.Is(line.err, io.EOF) && !refusal(line.err) && l.x.api.stopping.Err() == nil {
			l.leave()
		}
		ahead <- line
	}()
}

// call serves a line as a request, whose response it renders.
func (l *lineCalls) call(line *lineRead) {
	w := &lineWriter{header: http.Header{}, out: &l.out, begins: len(l.out.bytes)}
	x := &exchange{
		ResponseWriter: w, r: l.x.r.WithContext(l.ctx), api: l.x.api, id: freshID(), began: time.Now(),
		route: l.x.route, right: l.x.right, isLine: true, onWait: l.watch,
	}
	x.r.Header = l.header
	defer w.end()
	defer x.end()
	if line.text == nil {
		x.fail(line.err)
		return
	}
	text, err := x.keyed(line.text)
	if err == nil {
		err = x.demand(x.right) // anew: a token may be taken back while lines come
	}
	if err == nil {
		x.r.Body, x.r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
		err = l.handle(x)
	}
	if err != nil {
		x.fail(err)
	}
}

// keyed returns the body of the request that a line is, whose key becomes a header.
func (x *exchange) keyed(line []byte) (body []byte, err error) {
	if line[0] != '{' || !bytes.Contains(line, []byte(`"idempotencyKey"`)) {
		return line, nil
	}
	if key, value, ok := plainlyKeyed(line, "body"); ok && jsontext.Value(value).IsValid() {
		x.setKey(key)
		return value, nil
	}
	value, err := parse(line)
	if err != nil || !hasMember(value, "idempotencyKey") {
		return line, nil // as a body, it is refused for what it is
	}
	var key string
	err = readObject("body", value,
		member{name: "idempotencyKey", required: true, read: func(location string, value jsontext.Value) (err error) {
			if key, err = readText(location, value); err == nil {
				err = checkKey(location, key)
			}
			return err
		}},
		member{name: "body", required: true, read: func(_ string, value jsontext.Value) error {
			body = value
			return nil
		}})
	x.setKey(key)
	return body, err
}

// setKey gives the request a header of its own, with a key.
func (x *exchange) setKey(key string) {
	x.r.Header = maps.Clone(x.r.Header)
	x.r.Header["Idempotency-Key"] = []string{key}
}

// lineWriter writes the body of a response as a line.
type lineWriter struct {
	header http.Header
	out    *buffer
	begins int // where the line does
}

// Header returns a header that is not sent.
func (w *lineWriter) Header() http.Header { return w.header }

// WriteHeader does nothing: whoever reads the line sees by the body whether it is a problem.
func (w *lineWriter) WriteHeader(int) {}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.out.bytes = append(w.out.bytes, p...)
	return len(p), nil
}

// end ends the line. A line feed in the body is a space between two values.
func (w *lineWriter) end() {
	line := bytes.TrimRight(w.out.bytes[w.begins:], "\n")
	for i := bytes.IndexByte(line, '\n'); i >= 0; i = bytes.IndexByte(line, '\n') {
		line[i] = ' '
	}
	w.out.bytes = append(w.out.bytes[:w.begins+len(line)], '\n')
}
