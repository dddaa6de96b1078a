package host

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"
)

// serve handles one request of an HTTP API, payload format 2.0.
func (i *Invoker) serve(ctx context.Context, in *events.APIGatewayV2HTTPRequest) ([]byte, error) {
	w := &recorder{header: http.Header{}}
	r, err := request(ctx, in)
	if err != nil {
		problem(w, http.StatusBadRequest, "invalid", err.Error())
		return w.response()
	}
	serveWhole(i.f.HTTP, w, r, i.f.log())
	out, err := w.response()
	if len(out) <= lambdaMaxOutput {
		return out, err
	}
	size := w.body.Len()
	w.reset()
	problem(w, http.StatusUnprocessableEntity, "impossible",
		fmt.Sprintf("the answer has %d bytes, more than this host carries; ask for less, by a limit or a narrower path", size))
	return w.response()
}

// request converts the payload to a server's request.
func request(ctx context.Context, in *events.APIGatewayV2HTTPRequest) (*http.Request, error) {
	body := []byte(in.Body)
	if in.IsBase64Encoded {
		var err error
		if body, err = base64.StdEncoding.DecodeString(in.Body); err != nil {
			return nil, fmt.Errorf("the body is not Base64: %w", err)
		}
	}
	r, err := http.NewRequestWithContext(ctx, in.RequestContext.HTTP.Method, "/", bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("the method is not a token")
	}
	r.URL = target(in)
	r.RequestURI = r.URL.RequestURI()
	r.RemoteAddr = in.RequestContext.HTTP.SourceIP + ":0"
	for name, value := range in.Headers {
		r.Header.Set(name, value)
	}
	if len(in.Cookies) > 0 {
		r.Header.Set("Cookie", strings.Join(in.Cookies, "; "))
	}
	if r.Header.Get("X-Request-Id") == "" && in.RequestContext.RequestID != "" {
		r.Header.Set("X-Request-Id", in.RequestContext.RequestID)
	}
	if r.Host = r.Header.Get("Host"); r.Host == "" {
		r.Host = in.RequestContext.DomainName
	}
	r.Header.Del("Host") // as net/http's own server does
	return r, nil
}

// target returns the request's URL. A path that is validly escaped is kept as RawPath, so that a slash inside a name
// differs from one between names; some gateways pass it unescaped.
func target(in *events.APIGatewayV2HTTPRequest) *url.URL {
	raw := in.RawPath
	if stage := in.RequestContext.Stage; stage != "" && stage != "$default" {
		raw = strings.TrimPrefix(raw, "/"+stage)
	}
	if !strings.HasPrefix(raw, "/") {
		raw = "/" + raw
	}
	u := &url.URL{Path: raw, RawQuery: in.RawQueryString}
	if path, err := url.PathUnescape(raw); err == nil {
		u.Path, u.RawPath = path, raw // url.URL ignores a RawPath that is no encoding of Path
	}
	return u
}

// recorder buffers a response until it is complete.
type recorder struct {
	header http.Header
	status int
	sent   http.Header // the headers when the status was written
	body   bytes.Buffer
}

// Header returns the headers to be sent.
func (w *recorder) Header() http.Header { return w.header }

// WriteHeader records the first final status, and the headers at that time.
func (w *recorder) WriteHeader(status int) {
	if w.status != 0 || status < http.StatusOK { // informational responses don't pass the gateway
		return
	}
	w.status, w.sent = status, w.header.Clone()
}

// Write adds to the body.
func (w *recorder) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(p)
}

// reset discards what was recorded.
func (w *recorder) reset() { *w = recorder{header: http.Header{}} }

// maxQuoted is the size in bytes above which a body is sent in Base64, which adds a third: as text inside JSON it could
// double.
const maxQuoted = 1 << 20

// response returns the payload that API Gateway expects: several values of a header joined, cookies apart, and every body
// that is not short text in Base64.
func (w *recorder) response() ([]byte, error) {
	w.WriteHeader(http.StatusOK)
	out := events.APIGatewayV2HTTPResponse{StatusCode: w.status, Headers: map[string]string{}}
	for name, values := range w.sent {
		if name == "Set-Cookie" {
			out.Cookies = values
			continue
		}
		out.Headers[name] = strings.Join(values, ", ")
	}
	if body := w.body.Bytes(); len(body) <= maxQuoted && isText(w.sent, body) {
		out.Body = string(body)
	} else {
		out.Body, out.IsBase64Encoded = base64.StdEncoding.EncodeToString(body), true
	}
	return json.Marshal(out)
}

// isText reports whether the body can be put into a JSON string unencoded.
func isText(header http.Header, body []byte) bool {
	if len(body) == 0 {
		return true
	}
	kind, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil || header.Get("Content-Encoding") != "" || !utf8.Valid(body) {
		return false
	}
	return strings.HasPrefix(kind, "text/") || kind == "application/json" || strings.HasSuffix(kind, "+json") ||
		kind == "application/x-ndjson" || kind == "application/yaml"
}
