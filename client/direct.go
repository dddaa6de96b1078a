package client

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// direct sends requests to one server and reads the responses in the goroutine of the caller. The transport of net/http has two
// goroutines for each connection, and so wakes three threads for each request, which takes longer than all that a server in the same
// network has to do. Whatever it is not made for, such as TLS, proxies and bodies that are streamed, it leaves to that transport.
type direct struct {
	rest *http.Transport
	host string // of the server, as its URL has it
	addr string // of the server, with the port
	dial net.Dialer
	idle idleLines
}

// maxDirect is how many bytes a body has at most. A server that refuses a request unread still takes as much before it closes
// the connection, so that the response can be read after the whole request is written.
const maxDirect = 256 << 10

// newDirect returns a transport for requests to a server, which sends what it can by itself.
func newDirect(server *url.URL, rest *http.Transport) http.RoundTripper {
	port := server.Port()
	if port == "" {
		port = "80"
	}
	proxy, err := rest.Proxy(&http.Request{URL: server})
	if server.Scheme != "http" || proxy != nil || err != nil || !ascii(server.Host) || !canTell {
		return rest
	}
	return &direct{
		rest: rest, host: server.Host, addr: net.JoinHostPort(server.Hostname(), port),
		dial: net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second},
	}
}

func ascii(text string) bool {
	for i := range len(text) {
		if text[i] >= 0x80 {
			return false
		}
	}
	return true
}

// RoundTrip sends a request and returns its response, as [http.RoundTripper] demands.
func (d *direct) RoundTrip(request *http.Request) (*http.Response, error) {
	if !d.takes(request) {
		return d.rest.RoundTrip(request)
	}
	if ctx := request.Context(); ctx.Err() != nil { // what is not wanted any more must not be done
		closeBody(request)
		return nil, context.Cause(ctx)
	}
	l, err := d.idle.take(), error(nil)
	if l != nil {
		response, err := l.roundTrip(request)
		if err == nil || !l.silent || request.Context().Err() != nil || !replayable(request) {
			return response, err
		}
		if request.Body != nil { // the server has closed the connection at that moment
			fresh, err := request.GetBody()
			if err != nil {
				return nil, err
			}
			request = request.Clone(request.Context())
			request.Body = fresh
		}
	}
	if l, err = d.open(request.Context()); err != nil {
		closeBody(request)
		return nil, err
	}
	return l.roundTrip(request)
}

// takes reports whether it sends a request by itself.
func (d *direct) takes(request *http.Request) bool {
	again := request.Body == nil || request.GetBody != nil
	return request.URL.Scheme == "http" && request.URL.Host == d.host && again && request.ContentLength <= maxDirect && plain(request.Header)
}

// plain reports whether a header can be written as it is. What cannot, net/http's transport refuses.
func plain(header http.Header) bool {
	for name, values := range header {
		if !each(name, func(c byte) bool { return c > ' ' && c < 0x7f && c != ':' }) {
			return false
		}
		for _, value := range values {
			if !each(value, func(c byte) bool { return c >= ' ' && c != 0x7f }) {
				return false
			}
		}
	}
	return true
}

func each(text string, is func(c byte) bool) bool {
	for i := range len(text) {
		if !is(text[i]) {
			return false
		}
	}
	return text != "" || is(' ')
}

func closeBody(request *http.Request) {
	if request.Body != nil {
		_ = request.Body.Close()
	}
}

// replayable reports whether a request may be sent again though the server may have got it.
func replayable(request *http.Request) bool {
	return request.Method == http.MethodGet || request.Method == http.MethodHead || request.Header.Get("Idempotency-Key") != ""
}

// CloseIdleConnections closes the connections that no request uses.
func (d *direct) CloseIdleConnections() {
	d.idle.closeAll()
	d.rest.CloseIdleConnections()
}

// open makes a connection.
func (d *direct) open(ctx context.Context) (*directLine, error) {
	conn, err := d.dial.DialContext(ctx, "tcp", d.addr)
	if err != nil {
		return nil, err
	}
	return &directLine{Conn: conn, in: bufio.NewReader(conn), pool: &d.idle, look: newLook(conn)}, nil
}

// directLine is a connection.
type directLine struct {
	net.Conn
	in     *bufio.Reader
	pool   *idleLines
	look   *look
	since  time.Time // when it became idle
	silent bool      // the server has closed it without a response
}

// written holds requests that are being sent: one write of the system for each.
var written = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// roundTrip sends a request and reads the response up to its body. The connection is idle again when the body was read to its end,
// and closed if it is not, or after an error.
func (l *directLine) roundTrip(request *http.Request) (*http.Response, error) {
	ctx := request.Context()
	stop := context.AfterFunc(ctx, func() { _ = l.SetDeadline(time.Unix(1, 0)) })
	response, err := l.exchange(request)
	if err != nil {
		stop()
		_ = l.Close()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	body := &directBody{inner: response.Body, line: l, ctx: ctx, stop: stop, last: response.Close}
	if response.Body == http.NoBody {
		body.finish(true)
	} else {
		response.Body = body
	}
	return response, nil
}

// exchange writes a request and reads the head of its response.
func (l *directLine) exchange(request *http.Request) (*http.Response, error) {
	out := written.Get().(*bytes.Buffer)
	defer written.Put(out)
	out.Reset()
	if err := request.Write(out); err != nil {
		return nil, err
	}
	_, failed := l.Write(out.Bytes()) // there may be a response all the same
	if _, err := l.in.Peek(1); err != nil {
		l.silent = true
		if failed != nil {
			return nil, failed
		}
		return nil, err
	}
	for {
		response, err := http.ReadResponse(l.in, request)
		if err == nil && (failed != nil || response.StatusCode == http.StatusSwitchingProtocols) {
			response.Close = true
		}
		if err != nil || response.StatusCode >= http.StatusOK || response.StatusCode == http.StatusSwitchingProtocols {
			return response, err
		}
	}
}

// directBody is the body of a response.
type directBody struct {
	inner io.Reader
	line  *directLine
	ctx   context.Context
	stop  func() bool // keeps the end of ctx from ending what the connection does
	last  bool        // the server closes the connection
	ended bool        // the body was read to its end
	over  atomic.Bool // it was, or the body is closed
}

// Read reads the body; the end of the request's context ends it.
func (b *directBody) Read(p []byte) (int, error) {
	if b.ended {
		return 0, io.EOF
	}
	if b.over.Load() {
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := b.inner.Read(p)
	switch {
	case errors.Is(err, io.EOF):
		b.ended = true
		b.finish(true)
	case err != nil:
		b.finish(false)
		if b.ctx.Err() != nil {
			err = context.Cause(b.ctx)
		}
	}
	return n, err
}

// Close ends the response. One whose end was not read costs the connection.
func (b *directBody) Close() error {
	b.finish(false)
	return nil
}

func (b *directBody) finish(whole bool) {
	if b.over.Swap(true) {
		return
	}
	if b.stop() && whole && !b.last && b.line.in.Buffered() == 0 {
		b.line.pool.put(b.line)
	} else {
		_ = b.line.Close()
	}
}
