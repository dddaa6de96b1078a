package client

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Error is a refusal by the server: its problem detail (RFC 9457).
type Error struct {
	Status    int    `json:"status"`
	Code      string `json:"code"`   // stable and machine-readable, such as invalid, unauthorized, unavailable
	Detail    string `json:"detail"` // for people
	RequestID string `json:"request_id"`

	// Fields are those at fault.
	Fields []Field `json:"errors"`

	// RetryAfter is how long the server asks to wait before the request is repeated; 0: it does not say.
	RetryAfter time.Duration `json:"-"`
}

// Field is a part of the request that the server found fault with.
type Field struct {
	Location string `json:"location"` // such as body[2].key or query.after
	Message  string `json:"message"`
}

// Error answers the status, the detail, and where it helps the fields.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s", e.Status, http.StatusText(e.Status))
	if e.Detail != "" {
		b.WriteString(": " + e.Detail)
	}
	for _, f := range e.Fields {
		if !strings.Contains(e.Detail, f.Message) {
			fmt.Fprintf(&b, "; %s: %s", f.Location, f.Message)
		}
	}
	return b.String()
}

// failure answers what an answer other than 2xx says. A body that is no problem detail (from a proxy, say) is left out.
func failure(response *http.Response, body []byte) *Error {
	e := new(Error)
	if err := json.Unmarshal(body, e); err != nil {
		e = new(Error)
	}
	e.Status = response.StatusCode
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds > 0 {
		e.RetryAfter = time.Duration(seconds) * time.Second
	}
	return e
}

// Temporary reports whether the same request may well succeed later: the server was not reached, the answer broke off, or
// it is busy, restarting, or still at work on the first request with the same key.
func Temporary(err error) bool {
	var e *Error
	if !errors.As(err, &e) {
		return IsUnreachable(err) || errors.Is(err, errBrokenOff)
	}
	switch e.Status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	case http.StatusConflict:
		return e.Code == "in_progress"
	}
	return false
}

// errBrokenOff says that an answer began and did not end.
var errBrokenOff = errors.New("the answer broke off")

// IsUnreachable reports whether err says that no answer came from the server at all.
func IsUnreachable(err error) bool {
	var transport *url.Error
	var certificate *tls.CertificateVerificationError
	return errors.As(err, &transport) && !errors.As(err, &certificate)
}

// StatusOf answers the HTTP status of a refusal, 0 if err is none.
func StatusOf(err error) int {
	var e *Error
	if errors.As(err, &e) {
		return e.Status
	}
	return 0
}
