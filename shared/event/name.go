package event

import (
	"fmt"
	"strconv"
	"strings"
)

// MaxName is the length of the longest type name, in bytes.
const MaxName = 255

// nameProblem returns what is wrong with the form of the name of an event type, or "": it begins with an ASCII letter, holds ASCII
// letters, digits and "_.-:" only, and has at most [MaxName] bytes.
func nameProblem(name string) string {
	switch {
	case name == "":
		return "is empty: give the name of an event type"
	case len(name) > MaxName:
		return fmt.Sprintf("has %d bytes: the name of an event type has at most %d", len(name), MaxName)
	case !isLetter(name[0]):
		return "begins with " + strconv.QuoteRune(firstRune(name)) + ": the name of an event type begins with a letter from A to Z or a to z"
	}
	for _, r := range name[1:] {
		if !isNameRune(r) {
			return "holds " + strconv.QuoteRune(r) + ": the name of an event type has letters, digits and _ . - : only"
		}
	}
	return ""
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isNameRune(r rune) bool {
	return r < 0x80 && (isLetter(byte(r)) || '0' <= r && r <= '9' || strings.IndexByte("_.-:", byte(r)) >= 0)
}

func firstRune(s string) rune {
	for _, r := range s {
		return r
	}
	return 0
}

func emitProblem(name string) (Reason, string) {
	switch {
	case nameProblem(name) != "":
		return Invalid, nameProblem(name)
	case name == VariablesCustomEvent:
		return 0, ""
	case BuiltIn(name):
		return Unprocessable, strconv.Quote(name) + " is built in and comes from the scheduler only: emit a type with a name of its own"
	case isOverview(name):
		return Unprocessable, strconv.Quote(name) + " is the name of a snapshot: emit a type with a name of its own"
	case familyPrefix(name) != "":
		return Unprocessable, fmt.Sprintf("%q begins with %s, as built-in types do: emit a type whose name begins otherwise",
			name, familyPrefix(name))
	}
	return 0, ""
}

func isOverview(name string) bool {
	for i := range overviews {
		if overviews[i].name == name {
			return true
		}
	}
	return false
}

// familyPrefix returns the reserved prefix that the name begins with, or "".
func familyPrefix(name string) string {
	for _, prefix := range familyPrefixes {
		if strings.HasPrefix(name, prefix) {
			return prefix
		}
	}
	return ""
}
