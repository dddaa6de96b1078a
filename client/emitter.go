package client

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/event"
)

// maxLine is the server's limit on a line, in bytes.
const maxLine = 1 << 20

// Emitter emits over one connection that stays open: what its callers emit goes out at once, without waiting for the results of
// others. It may be used by many goroutines at once. A server, or a proxy before it, that cannot stream is not for it: there,
// [Client.Emit] does the same.
type Emitter struct {
	c *Client

	mu     sync.Mutex
	line   *emitLine // the connection; nil before the first event
	closed bool
}

// Emitter returns an Emitter, which connects with its first Emit. Close it when it is no longer needed.
func (c *Client) Emitter() *Emitter { return &Emitter{c: c} }

// errEmitterClosed is the error of an Emitter that was closed.
var errEmitterClosed = errors.New("the emitter is closed")

// Emit is [Client.Emit] over the emitter's connection, with the same promise: the events are appended once, all or none, and are
// durable when it returns. If the connection breaks off it makes another, and sends what has no result again. What several
// goroutines emit at the same time is appended in any order.
func (e *Emitter) Emit(ctx context.Context, events []event.Event) ([]event.ID, error) {
	ids, err := e.emit(ctx, events)
	if err != nil {
		return nil, fmt.Errorf("client: emit %d events: %w", len(events), err)
	}
	return ids, nil
}

func (e *Emitter) emit(ctx context.Context, events []event.Event) ([]event.ID, error) {
	text, err := e.render(events)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	for pause := newPause(); ; {
		ids, err := e.once(ctx, text)
		if err == nil {
			return ids, nil
		}
		wait := pause.next(err)
		if ctx.Err() != nil || !Temporary(err) || wait > e.c.atMost(e.c.patience, err)-time.Since(began) {
			return nil, err
		}
		e.c.onRetry(err, wait)
		if err := sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// render returns events as a line, with a key if it may be repeated.
func (e *Emitter) render(events []event.Event) ([]byte, error) {
	var text []byte
	if e.c.patience >= 0 {
		text = append(append(append(text, `{"idempotencyKey":"`...), rand.Text()...), `","events":`...)
	}
	text = appendFresh(text, events)
	if e.c.patience >= 0 {
		text = append(text, '}')
	}
	if bytes.IndexByte(text, '\n') >= 0 { // fields are as the caller has written them
		var b bytes.Buffer
		if err := json.Compact(&b, text); err != nil {
			return nil, err
		}
		text = b.Bytes()
	}
	if len(text) > maxLine { // the server would end the connection, and with it what others send
		return nil, &Error{Status: http.StatusRequestEntityTooLarge, Code: "too_large", Detail: fmt.Sprintf("more than %d bytes", maxLine)}
	}
	return append(text, '\n'), nil
}

// once sends a line over the connection, and waits for its result.
func (e *Emitter) once(ctx context.Context, text []byte) ([]event.ID, error) {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil, errEmitterClosed
	}
	if e.line == nil || !e.line.alive() {
		e.line = e.c.openLine()
	}
	line := e.line
	e.mu.Unlock()
	return line.send(ctx, text)
}

// Close ends the connection once everything that was emitted has its result. Later calls of Emit fail.
func (e *Emitter) Close() {
	e.mu.Lock()
	e.closed = true
	line := e.line
	e.mu.Unlock()
	if line != nil {
		line.finish()
	}
}

// emitResult is the result of a line.
type emitResult struct {
	IDs []event.ID `json:"eventIds"`
	lineProblem
	err error
}

// emitLine is one connection: a request whose body goes on while its response comes. It is the body's reader.
type emitLine struct {
	cancel context.CancelFunc
	over   chan struct{} // closed when the response has ended

	mu       sync.Mutex
	more     sync.Cond // text, or ended
	text     []byte    // to be sent
	expected []chan<- emitResult
	ended    bool  // nothing more is sent
	failed   error // why there will be no more results; nil while there may be
}

// openLine makes a connection.
func (c *Client) openLine() *emitLine {
	ctx, cancel := context.WithCancel(context.Background())
	l := &emitLine{cancel: cancel, over: make(chan struct{})}
	l.more.L = &l.mu
	go func() {
		defer close(l.over)
		defer cancel()
		l.fail(l.run(ctx, c))
	}()
	return l
}

// run reads results until there are no more. Its error says why.
func (l *emitLine) run(ctx context.Context, c *Client) error {
	request, err := c.request(ctx, call{method: http.MethodPost, path: base + "event"})
	if err != nil {
		return err
	}
	request.Body, request.GetBody, request.ContentLength = io.NopCloser(l), nil, -1
	request.Header.Set("Content-Type", "application/x-ndjson")
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	c.answered.Store(true)
	if response.StatusCode/100 != 2 {
		body, _ := io.ReadAll(response.Body) // what there is of it
		return failure(response, body)
	}
	in := bufio.NewReaderSize(response.Body, 64<<10)
	for {
		text, err := in.ReadBytes('\n')
		if err != nil {
			return fmt.Errorf("%w: %w", errBrokenOff, err)
		}
		l.result(text)
	}
}

// result gives the next line of the response to who waits for it.
func (l *emitLine) result(text []byte) {
	var r emitResult
	if err := json.Unmarshal(text, &r); err != nil {
		r.err = fmt.Errorf("answer: %w", err)
	} else if r.Status != 0 {
		r.err = r.failure()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.expected) > 0 {
		l.expected[0] <- r
		l.expected = l.expected[1:]
	}
}

// fail gives everyone who waits the error.
func (l *emitLine) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed, l.ended = err, true
	for _, to := range l.expected {
		to <- emitResult{err: err}
	}
	l.expected = nil
	l.more.Broadcast()
}

func (l *emitLine) alive() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.ended
}

// send sends a line and waits for its result. A connection on which none comes for attemptTime is given up.
func (l *emitLine) send(ctx context.Context, text []byte) ([]event.ID, error) {
	result := make(chan emitResult, 1)
	if err := l.put(text, result); err != nil {
		return nil, err
	}
	late := time.NewTimer(attemptTime)
	defer late.Stop()
	select {
	case r := <-result:
		return r.IDs, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-late.C:
		l.cancel()
		return nil, fmt.Errorf("%w: no result within %v", errBrokenOff, attemptTime)
	}
}

func (l *emitLine) put(text []byte, result chan<- emitResult) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return cmp.Or(l.failed, errBrokenOff)
	}
	l.text, l.expected = append(l.text, text...), append(l.expected, result)
	l.more.Signal()
	return nil
}

// Read returns what is to be sent; it waits until there is something.
func (l *emitLine) Read(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.text) == 0 {
		if l.ended {
			return 0, io.EOF
		}
		l.more.Wait()
	}
	n := copy(p, l.text)
	if l.text = l.text[n:]; len(l.text) == 0 {
		l.text = nil
	}
	return n, nil
}

// finish ends the request, and waits for the end of the response.
func (l *emitLine) finish() {
	l.mu.Lock()
	l.ended = true
	l.more.Broadcast()
	l.mu.Unlock()
	late := time.AfterFunc(attemptTime, l.cancel)
	defer late.Stop()
	<-l.over
}
