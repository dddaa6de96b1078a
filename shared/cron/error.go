package cron

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Error says where an expression is wrong, and why.
type Error struct {
	// Expression is the text as it was given.
	Expression string
	// Offset is where in Expression the fault lies, in bytes from 0; its length where something is missing at the end.
	Offset int
	// Reason says what is wrong and, where it is short, what would be right.
	Reason string
}

// Error answers the expression, the character (from 1) and the reason.
func (e *Error) Error() string {
	return fmt.Sprintf("cron expression %q, character %d: %s", shorten(e.Expression), e.Character(), e.Reason)
}

// Character answers where the fault lies in characters, from 1, as people count.
func (e *Error) Character() int { return utf8.RuneCountInString(e.Expression[:e.Offset]) + 1 }

// refuse answers an error about what stands at the offset.
func refuse(expression string, offset int, reason string, args ...any) *Error {
	return &Error{Expression: expression, Offset: offset, Reason: fmt.Sprintf(reason, args...)}
}

// shorten keeps quotations of what a client sent short.
func shorten(text string) string {
	const most = 80
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
