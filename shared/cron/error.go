package cron

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Error says where an expression is wrong, and why. [Parse] returns it.
type Error struct {
	// Expression is the text as it was given.
	Expression string
	// Offset is the place of the mistake in Expression, in bytes from 0; the length of Expression where something is
	// missing at the end.
	Offset int
	// Reason says what is wrong and, if that is short, what would be right.
	Reason string
}

// Error returns the expression, the character (from 1) and the reason.
func (e *Error) Error() string {
	return fmt.Sprintf("cron expression %q, character %d: %s", shorten(e.Expression), e.Character(), e.Reason)
}

// Character returns the place of the mistake in characters, from 1.
func (e *Error) Character() int { return utf8.RuneCountInString(e.Expression[:e.Offset]) + 1 }

// refuse returns an error about the text at the offset.
func refuse(expression string, offset int, reason string, args ...any) *Error {
	return &Error{Expression: expression, Offset: offset, Reason: fmt.Sprintf(reason, args...)}
}

// shorten cuts a quotation of what a client sent to 80 bytes.
func shorten(text string) string {
	const most = 80
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
