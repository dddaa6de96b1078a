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

// Error is a response of the server with a status other than 2xx: its problem detail (RFC 9457).
type Error struct {
	Status    int    `json:"status"`     // HTTP status
	Code      string `json:"code"`       // stable and machine-readable, such as invalid, unauthorized, unavailable
	Detail    string `json:"detail"`     // for people
	RequestID string `json:"request_id"` // as in the server's log

	// Fields are the invalid parts of the request.
	Fields []Field `json:"errors"`

	// RetryAfter is how long the server asks to wait before the request is repeated; 0: it does not say.
	RetryAfter time.Duration `json:"-"`
}

// Field is an invalid part of the request.
type Field struct {
	Location string `json:"location"` // such as body[2].key or query.after
	Message  string `json:"message"`  // what is wrong with it
}

// Error returns the status, the detail, and the fields' messages that the detail lacks.
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

// failure returns the error of a response other than 2xx. A body that is no problem detail (from a proxy, say) is left out.
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

// Temporary reports whether the same request may succeed later: the server was not reached, the response broke off, or
// the server is busy, restarting, or still handling the first request with the same key.
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

// errBrokenOff is the error of a response that began and did not end.
var errBrokenOff = errors.New("the answer broke off")

// IsUnreachable reports whether err says that the server sent no response at all. A certificate that cannot be verified is
// none of these errors.
func IsUnreachable(err error) bool {
	var transport *url.Error
	var certificate *tls.CertificateVerificationError
	return errors.As(err, &transport) && !errors.As(err, &certificate)
}

// StatusOf returns the HTTP status of an [*Error] in err's chain, 0 if there is none.
func StatusOf(err error) int {
	var e *Error
	if errors.As(err, &e) {
		return e.Status
	}
	return 0
}
