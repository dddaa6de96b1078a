package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
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
	ctx    context.Context // of what is being opened
	cancel context.CancelFunc
}

// pipesOf are the pipes of one operation. Like the connections of requests, those that no call uses are closed when they are old.
type pipesOf struct {
	idle idleLines

	opening bool // guarded by the mutex of all, as is the rest
	closed  bool // with the client: nothing is kept any more
	used    int  // pipes that calls use, and calls about to
	calls   int  // that have found no pipe, since
	since   time.Time
	not     time.Time // before then none is opened
}

// take returns a pipe for a call; nil if it is to go as a request.
func (s *pipes) take(o operation) *pipe {
	if s.direct == nil {
		return nil
	}
	s.mu.Lock()
	of := s.at(o)
	of.used++
	s.mu.Unlock()
	if line := of.idle.take(); line != nil {
		return &pipe{line, of}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	of.used--
	s.count(o, of)
	return nil
}

// giveBack ends the use of a pipe, which is kept if it has nothing left to be read.
func (s *pipes) giveBack(p *pipe, whole bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.of.used--
	if whole && !p.of.closed && p.line.in.Buffered() == 0 {
		p.of.idle.put(p.line)
	} else {
		_ = p.line.Close()
	}
}

// ready reports whether there is an idle pipe. If there is none, it counts the call.
func (s *pipes) ready(o operation) bool {
	if s.direct == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.at(o)
	ready := of.idle.count() > 0
	if !ready {
		s.count(o, of)
	}
	return ready
}

// at returns the pipes of an operation. Those of operations that were not called for long are forgotten. The caller holds mu.
func (s *pipes) at(o operation) *pipesOf {
	if of := s.of[o]; of != nil {
		return of
	}
	if s.of == nil {
		s.of = map[operation]*pipesOf{}
	}
	now := time.Now()
	maps.DeleteFunc(s.of, func(_ operation, of *pipesOf) bool {
		return !of.opening && of.used == 0 && of.idle.count() == 0 && now.Sub(of.since) > maxRest && now.After(of.not)
	})
	of := &pipesOf{since: now}
	s.of[o] = of
	return of
}

// count counts a call that has found no pipe, and opens one where calls are frequent. The caller holds mu.
func (s *pipes) count(o operation, of *pipesOf) {
	now := time.Now()
	if now.Sub(of.since) > time.Second {
		of.calls, of.since = 0, now
	}
	if of.calls++; of.calls < pipeAfter || of.opening || of.closed || now.Before(of.not) || s.open() >= maxIdle {
		return
	}
	of.opening = true
	if s.cancel == nil {
		s.ctx, s.cancel = context.WithCancel(context.Background())
	}
	go s.add(s.ctx, o, of)
}

// open returns how many pipes there are. The caller holds mu.
func (s *pipes) open() (n int) {
	for _, of := range s.of {
		n += of.used + of.idle.count()
	}
	return n
}

// add opens a pipe, which then is idle.
func (s *pipes) add(ctx context.Context, o operation, of *pipesOf) {
	line, err := s.c.openPipe(ctx, o)
	s.mu.Lock()
	defer s.mu.Unlock()
	of.opening, of.calls = false, 0
	switch {
	case err == nil && of.closed:
		_ = line.Close()
	case err == nil:
		of.idle.put(line)
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

// close ends the pipes that are idle or being opened, and those in use with their calls.
func (s *pipes) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancel != nil {
		s.cancel()
		s.cancel = nil
	}
	for _, of := range s.of {
		of.closed = true
		of.idle.closeAll()
	}
	s.of = nil
}

// pipe is a connection with a request of lines under way. One call at a time uses it.
type pipe struct {
	line *directLine
	of   *pipesOf
}

// openPipe sends the head of a request, and reads that of the response. A server that does not stream, or is behind a proxy that
// does not, sends none before the end of the request.
func (c *Client) openPipe(ctx context.Context, o operation) (*directLine, error) {
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
	err = openOn(line, request)
	if !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = line.Close()
		return nil, err
	}
	return line, nil
}

// openOn is openPipe over a connection.
func openOn(line *directLine, request *http.Request) error {
	if !plain(request.Header) { // net/http's transport refuses it
		return errNoPipe
	}
	var head bytes.Buffer
	fmt.Fprintf(&head, "POST %s HTTP/1.1\r\nHost: %s\r\nTransfer-Encoding: chunked\r\n", request.URL.RequestURI(), request.URL.Host)
	if err := request.Header.Write(&head); err != nil {
		return err
	}
	head.WriteString("\r\n")
	if _, err := line.Write(head.Bytes()); err != nil {
		return err
	}
	response, err := http.ReadResponse(line.in, request) //nolint:bodyclose // the body is as long as the pipe, and read from the connection
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		body, _ := readBody(response) // what there is of it
		return failure(response, body)
	}
	if !slices.Equal(response.TransferEncoding, []string{"chunked"}) {
		return errNoPipe
	}
	return nil
}

// fits reports whether a call can be a line. A key, which may be the caller's, must need no escapes.
func (q *call) fits() bool {
	return q.lines != "" && len(q.body) > 0 && len(q.body) <= pipeBody && bytes.IndexByte(q.body, '\n') < 0 &&
		(q.key == "" || each(q.key, func(c byte) bool { return '!' <= c && c <= '~' && c != '"' && c != '\\' }))
}

// call makes a call through a pipe.
func (s *pipes) call(outer context.Context, p *pipe, q *call) (reply, error) {
	ctx, cancel := context.WithTimeout(outer, q.attempt())
	defer cancel()
	defer s.c.dropIdle(outer, ctx)
	stop := context.AfterFunc(ctx, func() { _ = p.line.SetDeadline(time.Unix(1, 0)) })
	sent := time.Now()
	body, err := p.send(q)
	s.giveBack(p, stop() && err == nil)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
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
		if end := bytes.IndexByte(line, '\n'); end >= 0 && end < len(line)-1 {
			return nil, errors.New("more than was asked for")
		} else if end >= 0 {
			return line[:end], nil
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
	if q.key != "" { // which needs no escapes, see fits
		before, after = `{"idempotencyKey":"`+q.key+`","`+q.lines+`":`, "}\n\r\n"
	}
	size := len(before) + len(q.body) + len(after) - len("\r\n")
	out.Write(strconv.AppendInt(out.AvailableBuffer(), int64(size), 16))
	out.WriteString("\r\n")
	out.WriteString(before)
	out.Write(q.body)
	out.WriteString(after)
}
