package event

import (
	"strings"
)

// Reason is the kind of a refusal; it decides the HTTP status of the response.
type Reason uint8

// The reasons, the gravest first. Where several things are wrong with one body, the gravest reason is the error's.
const (
	// Invalid: malformed, of the wrong type, missing or unknown; HTTP 400.
	Invalid Reason = iota + 1
	// TooLarge: well formed, but beyond a limit; HTTP 413.
	TooLarge
	// Unprocessable: understood, but not permitted, such as a built-in type in an emission; HTTP 422.
	Unprocessable
)

// String returns the reason's name in lower case.
func (r Reason) String() string {
	switch r {
	case Invalid:
		return "invalid"
	case TooLarge:
		return "too large"
	case Unprocessable:
		return "unprocessable"
	default:
		return "no reason"
	}
}

// Problem is one thing that is wrong with what a client sent.
type Problem struct {
	// Location is where it is, such as "body[2].key", "query.return" or "path".
	Location string
	// Message says what is wrong, and how to mend it.
	Message string
}

// Error is the refusal of what a client sent. It has at least one problem; problems are in the order of the text. Reason
// is the gravest one.
type Error struct {
	Reason   Reason
	Problems []Problem
}

// Error returns the problems with their locations, joined by semicolons.
func (e *Error) Error() string {
	var b strings.Builder
	for i, p := range e.Problems {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(p.Location)
		b.WriteString(": ")
		b.WriteString(p.Message)
	}
	return b.String()
}

// refuse returns an error with a single problem.
func refuse(reason Reason, location, message string) *Error {
	return &Error{Reason: reason, Problems: []Problem{{Location: location, Message: message}}}
}

// problems collects what is wrong with one text, up to maxProblems.
type problems struct {
	reason Reason
	list   []Problem
}

const maxProblems = 20

func (p *problems) add(reason Reason, location, message string) {
	if p.reason == 0 || reason < p.reason {
		p.reason = reason
	}
	if len(p.list) < maxProblems {
		p.list = append(p.list, Problem{Location: location, Message: message})
	}
}

// err returns nil if nothing was added.
func (p *problems) err() error {
	if len(p.list) == 0 {
		return nil
	}
	return &Error{Reason: p.reason, Problems: p.list}
}
