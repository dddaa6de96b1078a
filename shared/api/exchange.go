package api

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/journal"
)

// The media types of responses.
const (
	typeJSON    = "application/json"
	typeProblem = "application/problem+json"
)

// statusGone is logged and counted, never sent, where a client left before the response.
const statusGone = 499

// exchange is one request and its response. It is the ResponseWriter that everything behind the API writes to.
type exchange struct {
	http.ResponseWriter
	r   *http.Request
	api *API

	id      string        // the request's
	token   *access.Token // who asks; nil while nobody has shown a token
	route   string        // pattern of the operation, "" until it is known
	began   time.Time
	status  int   // sent; 0: nothing yet
	size    int64 // bytes of the response's body
	cause   error // the error behind a failure, for the log
	patient bool  // it waits or streams by intention, so is not slow
	right   Right // what the operation demands

	taken  bool   // its body was read to its end
	lines  bool   // its body is lines, as it is taken
	isLine bool   // it is a line of another one
	onWait func() // is called before it waits, see [exchange.awaits]; nil: nothing is to be done

	values [3]string // of the headers that each response has of its own, in one piece of memory
}

// Values of headers that never change; net/http only reads them.
var (
	noSniff = []string{"nosniff"}
	noStore = []string{"no-store"}
)

// ownValue returns the value of a header, kept at that place of values.
func (x *exchange) ownValue(at int, text string) []string {
	x.values[at] = text
	return x.values[at : at+1 : at+1]
}

// begin returns the exchange of a request, with the headers that every response has.
func (a *API) begin(w http.ResponseWriter, r *http.Request) *exchange {
	x := &exchange{ResponseWriter: w, r: r, api: a, id: requestID(r), began: time.Now()}
	h := w.Header()
	h["X-Request-Id"] = x.ownValue(0, x.id)
	h["X-Content-Type-Options"] = noSniff
	h["Cache-Control"] = noStore
	return x
}

// requestID returns the client's X-Request-Id if it is fit for logs, or a fresh one.
func requestID(r *http.Request) string {
	id := first(r.Header, "X-Request-Id")
	if len(id) < 1 || len(id) > 64 {
		return freshID()
	}
	for i := range len(id) {
		if !isToken(id[i]) {
			return freshID()
		}
	}
	return id
}

// freshID returns an id that no other request has, of 26 digits of base 32. It is no secret, so that it need not come from
// crypto/rand, whose price each request would pay.
func freshID() string {
	const digits, each = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 13
	var text [2 * each]byte
	for i, bits := range [...]uint64{rand.Uint64(), rand.Uint64()} {
		for n := range each {
			text[i*each+n] = digits[bits&31]
			bits >>= 5
		}
	}
	return string(text[:])
}

func isToken(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_' || c == '.'
}

// WriteHeader notes the status.
func (x *exchange) WriteHeader(status int) {
	if x.status == 0 || x.status < 200 {
		x.status = status
	}
	x.ResponseWriter.WriteHeader(status)
}

// Write notes the size.
func (x *exchange) Write(p []byte) (int, error) {
	if x.status == 0 {
		x.status = http.StatusOK
	}
	n, err := x.ResponseWriter.Write(p)
	x.size += int64(n)
	return n, err
}

// Unwrap lets [http.ResponseController] reach the host's writer.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// identify finds out who asks. The error is a 401.
func (x *exchange) identify() error {
	if x.token != nil {
		return nil
	}
	secret := secretOf(x.r)
	if x.token = tokens(x.api.accept()).find(secret); x.token != nil {
		return nil
	}
	if secret == "" {
		if x.token = bearer(x.r.Context()); x.token != nil {
			return nil
		}
		return problem(CodeUnauthorized, "a token is needed")
	}
	return problem(CodeUnauthorized, "this token is not known")
}

// awaits notes that the operation is about to wait.
func (x *exchange) awaits() {
	x.patient = true
	if x.onWait != nil {
		x.onWait()
	}
}

// demand returns nil if the client has the right, a 401 or a 403 otherwise.
func (x *exchange) demand(right Right) error {
	if right == Anyone {
		return nil
	}
	if err := x.identify(); err != nil {
		return err
	}
	if !right.GrantedTo(x.token.Role) {
		return problem(CodeForbidden, "the role %s may not do this", x.token.Role)
	}
	return nil
}

// demandAnew is demand for a request that goes on, whose token may have been taken back.
func (x *exchange) demandAnew() error {
	x.token = nil
	return x.demand(x.right)
}

// json responds with a body that is JSON already.
func (x *exchange) json(status int, body []byte) { x.bytes(status, typeJSON, body) }

// bytes responds with a whole body of that media type.
func (x *exchange) bytes(status int, kind string, body []byte) {
	h := x.Header()
	h["Content-Type"] = x.ownValue(1, kind)
	h["Content-Length"] = x.ownValue(2, strconv.Itoa(len(body)))
	x.WriteHeader(status)
	_, _ = x.Write(body) // the client has left; there is nobody to tell
}

// fail responds with the problem that err is. A response that has begun is broken off, so that the client sees that it
// is not whole.
func (x *exchange) fail(err error) {
	x.cause = err
	if x.status != 0 {
		panic(http.ErrAbortHandler)
	}
	x.problem(problemOf(err))
	if x.left(err) {
		x.status = statusGone
	}
}

// left reports whether the failure is that the client has left. It is true also where the host ended the request and the
// client still waits for the response: the two cannot be told apart.
func (x *exchange) left(err error) bool {
	return errors.Is(err, context.Canceled) && x.r.Context().Err() != nil
}

func (x *exchange) problem(p *Problem) {
	if p.RequestID = x.id; x.isLine {
		p.inLine()
	}
	h := x.Header()
	for name, values := range p.headers() {
		if h[name] == nil {
			h[name] = values
		}
	}
	body, err := json.Marshal(p)
	if err != nil {
		panic(err) // a struct of strings and numbers
	}
	if ofLines(x.r.Header) { // or net/http would wait for the end of the body, which the client may keep open
		control := http.NewResponseController(x)
		_ = control.EnableFullDuplex()
		_ = control.SetReadDeadline(time.Now().Add(lingerTime))
		x.last()
	}
	x.bytes(p.Status, typeProblem, body)
}

// last has the connection closed after the response. It is for a body that was not read to its end: what is still to come of it must
// not be taken for the next request. net/http does so by itself, except with a response that begins before the end of the body.
func (x *exchange) last() {
	w := x.ResponseWriter
	for inner, ok := w.(interface{ Unwrap() http.ResponseWriter }); ok; inner, ok = w.(interface{ Unwrap() http.ResponseWriter }) {
		w = inner.Unwrap()
	}
	tooLong := http.MaxBytesReader(w, io.NopCloser(strings.NewReader(" ")), 0)
	_, _ = tooLong.Read(make([]byte, 1)) // a body beyond its bound, which is what a server closes a connection for
}

// linger takes what is still to come of the body, for a while: a client that writes all of it before it reads would lose the response, since
// a connection that is closed while it has bytes that nobody has read is reset. Where the host has the whole body, and in HTTP/2, whose
// streams end one by one, nothing is lost.
func (x *exchange) linger() {
	if x.taken || x.lines || x.isLine || x.r.ContentLength == 0 || x.r.ProtoMajor != 1 {
		return
	}
	patience := refusedTime
	if ofLines(x.r.Header) {
		patience = lingerTime
	}
	control := http.NewResponseController(x)
	if control.Flush() != nil || control.SetReadDeadline(time.Now().Add(patience)) != nil {
		return
	}
	defer context.AfterFunc(x.api.stopping, func() { _ = control.SetReadDeadline(time.Unix(1, 0)) })()
	_, _ = io.CopyN(io.Discard, x.r.Body, lingerSize)
}

// end is deferred: it turns a panic into a 500, measures and logs.
func (x *exchange) end() {
	reason := recover()
	if cause, _ := reason.(error); reason != nil && !errors.Is(cause, http.ErrAbortHandler) {
		reason = x.crash(reason)
	}
	took := time.Since(x.began)
	if !x.lines { // each line is measured as a request
		x.api.metrics.Request(x.name(), x.status, took)
	}
	x.log(took)
	if reason != nil {
		panic(reason)
	}
	x.linger()
}

// crash logs a panic and returns what is still to be thrown: nil if the client could be told, or the signal to break off.
func (x *exchange) crash(reason any) any {
	x.api.log.Error("handler panicked",
		"request_id", x.id, "route", x.name(), "reason", reason, "stack", string(debug.Stack()))
	if x.status != 0 {
		return http.ErrAbortHandler
	}
	x.problem(problem(CodeInternal, "an unexpected failure; the log has it under the request id"))
	return nil
}

// name returns the route, or "none": paths that lead nowhere are the client's words and have no place in measurements.
func (x *exchange) name() string {
	if x.route == "" {
		return "none"
	}
	return x.route
}

// log logs failures as errors, slow requests as warnings, and everything else at level debug: also requests cut short
// because the server ends, whose clients ask the next one. It logs the token's name, never the token, the query or a payload.
func (x *exchange) log(took time.Duration) {
	level, message := slog.LevelDebug, "request"
	switch {
	case x.api.unready != "":
		message = "request came too early"
	case errors.Is(x.cause, journal.ErrClosed):
		message = "request ended with the server"
	case x.status >= 500:
		level, message = slog.LevelError, "request failed"
	case took > x.api.slow && !x.patient:
		level, message = slog.LevelWarn, "request was slow"
	}
	ctx := x.r.Context()
	if !x.api.log.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("request_id", x.id), slog.String("route", x.name()), slog.Int("status", x.status),
		slog.Duration("took", took), slog.Int64("bytes", x.size),
	}
	if x.token != nil {
		attrs = append(attrs, slog.String("client", x.token.Name))
	}
	if x.cause != nil {
		attrs = append(attrs, slog.Any("error", x.cause))
	}
	x.api.log.LogAttrs(context.WithoutCancel(ctx), level, message, attrs...)
}
