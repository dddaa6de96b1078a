package strict

import (
	"strconv"
	"strings"
)

// Mistake is one error in a document.
type Mistake struct {
	Line int    // from 1; 0 if unknown
	Path string // such as handlers[2].name; empty for the document as a whole
	// Message says what is wrong.
	Message string

	TooLarge bool // the value is well formed, but larger than allowed
}

// String returns the path, if any, and the message.
func (m Mistake) String() string {
	if m.Path == "" {
		return m.Message
	}
	return m.Path + ": " + m.Message
}

// Error holds all mistakes of a document, in the order of the lines; at least one.
type Error struct {
	Name     string // of the file or variable
	Mistakes []Mistake
}

// Error returns a line for each mistake: NAME:LINE: PATH: MESSAGE.
func (e *Error) Error() string {
	var b strings.Builder
	for i, m := range e.Mistakes {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(e.Name + ":" + strconv.Itoa(m.Line) + ": " + m.String())
	}
	return b.String()
}
