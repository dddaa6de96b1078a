package api

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Problem is a failure as clients see it: a problem detail of RFC 9457, with a stable code, the fields at fault, and
// message, which repeats detail for clients of EventNative's task API. It is an error; handlers return it.
type Problem struct {
	Type      string       `json:"type"`                 // where the code is explained, as a reference
	Title     string       `json:"title"`                // the status in words
	Status    int          `json:"status"`               // 400 to 599
	Detail    string       `json:"detail"`               // what is wrong with this request
	Code      Code         `json:"code"`                 // stable and machine-readable
	Message   string       `json:"message"`              // the same as detail
	Errors    []FieldError `json:"errors,omitempty"`     // the fields at fault
	RequestID string       `json:"request_id,omitempty"` // the X-Request-Id of this request

	// RetryAfter is in how many seconds to come back, of a problem that is a line; a response has it as a header.
	RetryAfter int `json:"retry_after,omitempty"`

	allow string // the header Allow of a 405
	retry time.Duration
}

// FieldError names a field that is at fault.
type FieldError struct {
	Location string `json:"location"` // such as body.priority, body[2].key, query.after, path or header.Idempotency-Key
	Message  string `json:"message"`
}

// problem returns a failure of that code.
func problem(code Code, format string, args ...any) *Problem {
	f, detail := failures[code], fmt.Sprintf(format, args...)
	return &Problem{
		Type: "/docs#" + string(code), Title: http.StatusText(f.status), Status: f.status,
		Detail: detail, Code: code, Message: detail, retry: f.retry,
	}
}

// at names the field at fault, with the detail as its message.
func (p *Problem) at(location string) *Problem {
	p.Errors = append(p.Errors, FieldError{Location: location, Message: p.Detail})
	p.Detail = location + ": " + p.Detail
	p.Message = p.Detail
	return p
}

// invalid returns a 400 that names the field.
func invalid(location, format string, args ...any) *Problem {
	return problem(CodeInvalid, format, args...).at(location)
}

// Error returns the code and the detail.
func (p *Problem) Error() string { return string(p.Code) + ": " + p.Detail }

// headers returns the headers that belong to the failure.
func (p *Problem) headers() http.Header {
	h := http.Header{}
	switch {
	case p.Status == http.StatusUnauthorized:
		h.Set("WWW-Authenticate", `Bearer realm="millrace", Basic realm="millrace", charset="UTF-8"`)
	case p.allow != "":
		h.Set("Allow", p.allow)
	case p.retry > 0:
		h.Set("Retry-After", strconv.Itoa(p.seconds()))
	}
	return h
}

// inLine makes p the problem of a line, which has as members what a request has as headers: the key, and when to come back.
func (p *Problem) inLine() {
	p.RetryAfter = p.seconds()
	if rest, ofKey := strings.CutPrefix(p.Detail, inKeyHeader); ofKey {
		p.Detail = inKeyMember + rest
		p.Message, p.Errors[0].Location = p.Detail, inKeyMember
	}
}

// seconds returns in how many seconds to come back; 0: it does not say.
func (p *Problem) seconds() int { return int(math.Ceil(p.retry.Seconds())) }
