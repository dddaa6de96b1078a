package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Who makes the same call again and again need not send a request each time: the operations that are called most take bodies of lines,
// each of which is as a request, and has a line of the response. So a connection with such a request under way, a pipe, carries one
// call after the other, for half of what a request costs on either side. It is opened beside the calls once these are frequent, and
// whatever it does not carry, or is not offered by the server or a proxy before it, goes as a request as ever.

const (
	pipeAfter = 16          // calls of an operation within a second, after which a pipe is opened for it
	pipeMost  = 64          // pipes that an operation has at most
	pipeBody  = maxDirect   // bytes of a call that goes through a pipe, at most
	pipeTime  = time.Second // within which a server that streams begins its response
	pipeNever = time.Hour   // how long none is tried after the server has not offered one
)

// operation is what is called: a path, and the further header that all calls of a pipe have in common.
type operation struct {
	path   string
	header [2]string
}

// pipes are the open pipes of a client.
type pipes struct {
	c      *Client
	direct *direct // makes the connections; nil: there are no pipes

	mu     sync.Mutex
	of     map[operation]*pipesOf
	sweep  *time.Timer
	ctx    context.Context // of what is being opened
	cancel context.CancelFunc
}

// pipesOf are the pipes of one operation.
type pipesOf struct {
	idle    []*pipe // the one that was used last at the end
	open    int     // idle or in use
	opening bool
	calls   int       // since
	since   time.Time // about a second ago at most
	not     time.Time // before then none is opened
}

// take returns a pipe for a call; nil if it is to go as a request.
func (s *pipes) take(o operation) *pipe {
	if s.direct == nil {
		return nil
	}
	for {
		p := s.pop(o)
		if p == nil || p.line.look.open() {
			return p
		}
		s.drop(p)
	}
}

// pop returns an idle pipe. If there is none, it counts the call.
func (s *pipes) pop(o operation) *pipe {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.at(o)
	last := len(of.idle) - 1
	if last < 0 {
		s.count(o, of)
		return nil
	}
	p := of.idle[last]
	of.idle[last], of.idle = nil, of.idle[:last]
	return p
}

// ready reports whether there is an idle pipe. If there is none, it counts the call.
func (s *pipes) ready(o operation) bool {
	if s.direct == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.at(o)
	if len(of.idle) == 0 {
		s.count(o, of)
	}
	return len(of.idle) > 0
}

// at returns the pipes of an operation.
func (s *pipes) at(o operation) *pipesOf {
	of := s.of[o]
	if of == nil {
		if s.of == nil {
			s.of = map[operation]*pipesOf{}
		}
		of = &pipesOf{since: time.Now()}
		s.of[o] = of
		s.sweepLater()
	}
	return of
}

// count counts a call that has found no pipe, and opens one where calls are frequent.
func (s *pipes) count(o operation, of *pipesOf) {
	now := time.Now()
	if now.Sub(of.since) > time.Second {
		of.calls, of.since = 0, now
	}
	if of.calls++; of.calls < pipeAfter || of.opening || of.open >= pipeMost || now.Before(of.not) {
		return
	}
	of.opening = true
	if s.cancel == nil {
		s.ctx, s.cancel = context.WithCancel(context.Background())
	}
	go s.add(s.ctx, o, of)
}

// add opens a pipe, which then is idle.
func (s *pipes) add(ctx context.Context, o operation, of *pipesOf) {
	p, err := s.c.openPipe(ctx, o)
	s.mu.Lock()
	defer s.mu.Unlock()
	of.opening, of.calls = false, 0
	switch {
	case err == nil && ctx.Err() != nil:
		_ = p.line.Close()
	case err == nil:
		p.of = of
		of.open++
		s.put(p)
	case notOffered(err):
		of.not = time.Now().Add(pipeNever)
	default: // the calls tell why
		of.not = time.Now().Add(time.Second)
	}
}

// errNoPipe says that the response does not go on.
var errNoPipe = errors.New("client: the server does not stream")

// notOffered reports whether an error says that the server does not take lines, or does not stream.
func notOffered(err error) bool {
	switch status := StatusOf(err); status {
	case 0:
		return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errNoPipe)
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusTooManyRequests:
		return false
	default:
		return status < http.StatusInternalServerError
	}
}

// put keeps a pipe for further calls. The caller holds mu.
func (s *pipes) put(p *pipe) {
	p.line.since = time.Now()
	p.of.idle = append(p.of.idle, p)
}

func (s *pipes) giveBack(p *pipe) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.of.open == 0 { // the client was closed meanwhile
		_ = p.line.Close()
		return
	}
	s.put(p)
}

// drop ends a pipe.
func (s *pipes) drop(p *pipe) {
	_ = p.line.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	p.of.open = max(0, p.of.open-1)
}

func (s *pipes) sweepLater() {
	if s.sweep == nil {
		s.sweep = time.AfterFunc(maxRest/3, s.expire)
	}
}

// expire closes what has been idle for too long, and comes again while anything is left.
func (s *pipes) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for o, of := range s.of {
		of.idle = slices.DeleteFunc(of.idle, func(p *pipe) bool {
			old := time.Since(p.line.since) >= maxRest/3
			if old {
				of.open--
				_ = p.line.Close()
			}
			return old
		})
		if of.open == 0 && !of.opening && time.Now().After(of.not) {
			delete(s.of, o)
		}
	}
	if s.sweep = nil; len(s.of) > 0 {
		s.sweepLater()
	}
}

// close ends the pipes that are idle or being opened, and lets those in use end with their calls.
func (s *pipes) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancel != nil {
		s.cancel()
		s.cancel = nil
	}
	for _, of := range s.of {
		for _, p := range of.idle {
			_ = p.line.Close()
		}
		of.idle, of.open = nil, 0
	}
	s.of = nil
	if s.sweep != nil {
		s.sweep.Stop()
		s.sweep = nil
	}
}

// pipe is a connection with a request of lines under way. One call at a time uses it.
type pipe struct {
	line *directLine
	of   *pipesOf
}

// openPipe sends the head of a request, and reads that of the response. A server that does not stream, or is behind a proxy that
// does not, sends none before the end of the request.
func (c *Client) openPipe(ctx context.Context, o operation) (*pipe, error) {
	ctx, cancel := context.WithTimeout(ctx, pipeTime)
	defer cancel()
	request, err := c.request(ctx, call{method: http.MethodPost, path: o.path, header: o.header, kind: "application/x-ndjson", body: []byte{}})
	if err != nil {
		return nil, err
	}
	line, err := c.pipes.direct.open(ctx)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = line.SetDeadline(time.Unix(1, 0)) })
	p, err := openedPipe(line, request)
	if !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = line.Close()
		return nil, err
	}
	return p, nil
}

func openedPipe(line *directLine, request *http.Request) (*pipe, error) {
	var head bytes.Buffer
	fmt.Fprintf(&head, "POST %s HTTP/1.1\r\nHost: %s\r\nTransfer-Encoding: chunked\r\n", request.URL.RequestURI(), request.URL.Host)
	if err := request.Header.Write(&head); err != nil {
		return nil, err
	}
	head.WriteString("\r\n")
	if _, err := line.Write(head.Bytes()); err != nil {
		return nil, err
	}
	response, err := http.ReadResponse(line.in, request) //nolint:bodyclose // the body is as long as the pipe, and read from the connection
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		body, _ := readBody(response) // what there is of it
		return nil, failure(response, body)
	}
	if !slices.Equal(response.TransferEncoding, []string{"chunked"}) {
		return nil, errNoPipe
	}
	return &pipe{line: line}, nil
}

// fits reports whether a call can be a line.
func (q *call) fits() bool {
	return q.lines != "" && len(q.body) > 0 && len(q.body) <= pipeBody && bytes.IndexByte(q.body, '\n') < 0
}

// call makes a call through a pipe.
func (s *pipes) call(outer context.Context, p *pipe, q *call) (reply, error) {
	ctx, cancel := context.WithTimeout(outer, q.attempt())
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = p.line.SetDeadline(time.Unix(1, 0)) })
	sent := time.Now()
	body, err := p.send(q)
	if !stop() || err != nil {
		s.drop(p)
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
	} else {
		s.giveBack(p)
	}
	if err != nil {
		return reply{}, fmt.Errorf("%w: %w", errBrokenOff, err)
	}
	if bytes.HasPrefix(body, []byte(`{"type":`)) { // no result begins like a problem
		var p lineProblem
		if err := json.Unmarshal(body, &p); err == nil && p.Status/100 > 2 {
			return reply{}, p.failure()
		}
	}
	return reply{sent: sent, status: http.StatusOK, body: body}, nil
}

// lineProblem is a problem that is a line of a response.
type lineProblem struct {
	Error
	Seconds int `json:"retry_after"`
}

// failure returns the problem as the error of a response.
func (p *lineProblem) failure() *Error {
	p.RetryAfter = time.Duration(p.Seconds) * time.Second
	return &p.Error
}

// send sends a line and reads the next one of the response.
func (p *pipe) send(q *call) ([]byte, error) {
	out := written.Get().(*bytes.Buffer)
	defer written.Put(out)
	out.Reset()
	q.render(out)
	if _, err := p.line.Write(out.Bytes()); err != nil {
		return nil, err
	}
	for line := []byte(nil); ; {
		var err error
		if line, err = p.chunk(line); err != nil {
			return nil, err
		}
		if last := len(line) - 1; last >= 0 && line[last] == '\n' { // there is no other result after it
			return line[:last], nil
		}
	}
}

// chunk reads a chunk of the response (RFC 9112, 7.1), with what ends it, so that an idle connection has nothing to be read.
func (p *pipe) chunk(line []byte) ([]byte, error) {
	in := p.line.in
	head, err := in.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	digits, _, _ := bytes.Cut(bytes.TrimSpace(head), []byte{';'})
	size, err := strconv.ParseUint(string(digits), 16, 31)
	if err != nil {
		return nil, err
	}
	if size == 0 || size > maxTold {
		return nil, io.ErrUnexpectedEOF
	}
	from := len(line)
	line = slices.Grow(line, int(size)+2)[:from+int(size)+2]
	if _, err := io.ReadFull(in, line[from:]); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(line, []byte("\r\n")), nil
}

// render renders a call as a chunk of the body.
func (q *call) render(out *bytes.Buffer) {
	before, after := "", "\n\r\n"
	if q.key != "" { // which needs no escapes: it is the client's own
		before, after = `{"idempotencyKey":"`+q.key+`","`+q.lines+`":`, "}\n\r\n"
	}
	size := len(before) + len(q.body) + len(after) - len("\r\n")
	out.Write(strconv.AppendInt(out.AvailableBuffer(), int64(size), 16))
	out.WriteString("\r\n")
	out.WriteString(before)
	out.Write(q.body)
	out.WriteString(after)
}
