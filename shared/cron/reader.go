package cron

import "strings"

// reader reads one field, from left to right, and keeps its place in the whole expression.
type reader struct {
	*field
	expression string
	pos, end   int // the rest of the field
}

func readerOf(expression string, w word, f *field) *reader {
	return &reader{f, expression, w.offset, w.offset + len(w.text)}
}

// refuse returns an error about the text at the offset.
func (r *reader) refuse(offset int, reason string, args ...any) error {
	return refuse(r.expression, offset, reason, args...)
}

// peek returns the next character in upper case, or 0 at the end.
func (r *reader) peek() byte {
	if r.pos >= r.end {
		return 0
	}
	return upper(r.expression[r.pos])
}

func upper(c byte) byte {
	if 'a' <= c && c <= 'z' {
		return c - 'a' + 'A'
	}
	return c
}

// take moves behind the next character and returns true, if that is c.
func (r *reader) take(c byte) bool {
	if r.peek() != c {
		return false
	}
	r.pos++
	return true
}

// atItemEnd reports whether an item of a list ends here.
func (r *reader) atItemEnd() bool { return r.pos >= r.end || r.expression[r.pos] == ',' }

// list reads items separated by commas.
func (r *reader) list(item func() error) error {
	for {
		if r.atItemEnd() {
			return r.refuse(r.pos, "a list of %s lacks an item here", r.name)
		}
		if err := item(); err != nil {
			return err
		}
		if !r.atItemEnd() {
			return r.refuse(r.pos, "%s is not expected here in %s", r.shown(), r.name)
		}
		if !r.take(',') {
			return nil
		}
	}
}

// shown returns the next character in quotes, for a message.
func (r *reader) shown() string {
	for _, c := range r.expression[r.pos:r.end] {
		return "\"" + strings.ToValidUTF8(string(c), "\uFFFD") + "\""
	}
	return "the end"
}

// values reads a list of plain items: values, ranges, steps. The set holds their distances from the least value.
func (r *reader) values() (set, error) {
	var found set
	err := r.list(func() error { return r.item(&found) })
	return found, err
}

// item reads "*", "*/n", "/n", "a", "a/n", "a-b" or "a-b/n".
func (r *reader) item(into *set) error {
	first, last, err := r.span()
	if err != nil {
		return err
	}
	step := 1
	if r.take('/') {
		if step, err = r.step(); err != nil {
			return err
		}
	}
	r.fill(into, first, last, step)
	return nil
}

// span reads the part before a step: the first value and the last. A single value before a step reaches to the greatest
// value.
func (r *reader) span() (first, last int, err error) {
	if r.take('*') || r.peek() == '/' {
		return r.min, r.max, nil
	}
	begin := r.pos
	if first, err = r.value(); err != nil {
		return 0, 0, err
	}
	last = first
	switch {
	case r.take('-'):
		if last, err = r.value(); err != nil {
			return 0, 0, err
		}
		if last < first && !r.wraps {
			return 0, 0, r.refuse(begin, "a range of %s goes from the earlier to the later", r.name)
		}
	case r.peek() == '/':
		last = r.max
	}
	if first > r.max { // Sunday is written as 7
		first, last = r.min, last%first
	}
	return first, last, nil
}

// step reads the number after a slash.
func (r *reader) step() (int, error) {
	begin := r.pos
	n, err := r.number()
	if err != nil {
		return 0, err
	}
	if n < 1 || n > r.maxStep {
		return 0, r.refuse(begin, "a step of %s goes from 1 to %d", r.name, r.maxStep)
	}
	return n, nil
}

// value reads a number or a name, and checks that it is a value of the field.
func (r *reader) value() (int, error) {
	begin := r.pos
	if r.names != "" && isLetter(r.peek()) {
		return r.named()
	}
	n, err := r.number()
	if err != nil {
		return 0, err
	}
	if n < r.min || n > r.highest() {
		return 0, r.refuse(begin, "%s go from %d to %d", r.name, r.min, r.highest())
	}
	return n, nil
}

// named reads a name of three letters; it leaves an L after the name of a weekday.
func (r *reader) named() (int, error) {
	begin := r.pos
	for isLetter(r.peek()) {
		r.pos++
	}
	name := strings.ToUpper(r.expression[begin:r.pos])
	if r.field == &weekdayField && len(name) == 4 && name[3] == 'L' {
		name = name[:3]
		r.pos--
	}
	if len(name) == 3 {
		if i := strings.Index(r.names, name); i >= 0 && i%3 == 0 {
			return i/3 + r.origin, nil
		}
	}
	return 0, r.refuse(begin, "%s are named %s to %s, in three letters", r.name, r.names[:3], r.names[len(r.names)-3:])
}

// number reads digits. A number too large for any field is capped.
func (r *reader) number() (int, error) {
	begin, n := r.pos, 0
	for ; isDigit(r.peek()); r.pos++ {
		n = min(n*10+int(r.peek()-'0'), 1e12)
	}
	if r.pos == begin {
		return 0, r.refuse(begin, "want a number for %s, not %s", r.name, r.shown())
	}
	return n, nil
}

func isLetter(c byte) bool { return 'A' <= c && c <= 'Z' }
func isDigit(c byte) bool  { return '0' <= c && c <= '9' }
