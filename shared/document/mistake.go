package document

import (
	"strconv"
	"strings"
)

// Mistake is one thing that is wrong in a document.
type Mistake struct {
	Line    int    // from 1; 0 where it is not known
	Path    string // such as handlers[2].name; empty for the document as a whole
	Message string

	TooLarge bool // it is well formed, but larger than what is taken
}

// String answers the path, if any, and the message.
func (m Mistake) String() string {
	if m.Path == "" {
		return m.Message
	}
	return m.Path + ": " + m.Message
}

// Error is all that is wrong in a document, in the order of the lines.
type Error struct {
	Name     string // of the file or variable
	Mistakes []Mistake
}

// Error answers a line for each mistake: NAME:LINE: PATH: MESSAGE.
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
