package event

import "bytes"

// ScanSeq reads a response in exactly the form in which [Seq.AppendJSON] writes it, without a look into the events' own fields:
// these are parts of text, as they are written, and whether they are valid JSON shows when they are read. So it costs a fraction of
// [ParseSeq]. ok is false for every other form, which ParseSeq may read.
func ScanSeq(text []byte) (s Seq, ok bool) {
	c := scanner{rest: text}
	if !c.skip(`{"TYPE":"`) {
		return Seq{}, false
	}
	for _, kind := range [...]SeqKind{NonEmpty, Empty, Torn} {
		if c.skip(kind.String() + `","eventId":`) {
			s.Kind = kind
		}
	}
	s.EventID = c.id()
	switch s.Kind {
	case NonEmpty:
		s.Events, ok = c.events(len(text))
	case Empty:
		if ok = c.skip(`,"lastEventId":`); ok {
			s.LastEventID = c.id()
		}
	case Torn:
		ok = true
	}
	if !ok || !c.skip("}") || len(bytes.TrimSpace(c.rest)) > 0 || c.failed {
		return Seq{}, false
	}
	return s, true
}

// ScanEvent reads an event with an id as [Event.AppendJSON] writes it, as [ScanSeq] does.
func ScanEvent(text []byte) (e Event, ok bool) {
	c := scanner{rest: text}
	c.event(&e)
	return e, !c.failed && len(bytes.TrimSpace(c.rest)) == 0
}

// scanner goes through a text of that form.
type scanner struct {
	rest   []byte
	failed bool

	typeName, path string // of the event before, which the next one most often has too
}

// skip takes a text, if it comes next.
func (c *scanner) skip(text string) bool {
	if len(c.rest) < len(text) || string(c.rest[:len(text)]) != text {
		return false
	}
	c.rest = c.rest[len(text):]
	return true
}

// events takes the array of a NonEmpty. size is that of the whole text.
func (c *scanner) events(size int) (events []Event, ok bool) {
	if !c.skip(`,"eventSnapshots":[`) {
		return nil, false
	}
	for !c.failed {
		events = append(events, Event{})
		before := len(c.rest)
		c.event(&events[len(events)-1])
		if len(events) == 1 {
			events = append(make([]Event, 0, min(1+size/(before-len(c.rest)+1), 1<<16)), events...)
		}
		if c.skip("]") {
			return events, !c.failed
		}
		if !c.skip(",") {
			return nil, false
		}
	}
	return nil, false
}

// event takes an event.
func (c *scanner) event(e *Event) {
	if !c.skip(`{"eventId":`) {
		c.failed = true
		return
	}
	e.ID = c.id()
	if c.skip(`,"key":`) {
		e.Key = c.key()
	}
	if !c.skip(`,"TYPE":`) {
		c.failed = true
		return
	}
	c.typeName = c.text(c.typeName)
	e.Type = c.typeName
	if e.Type == "" {
		c.failed = true
		return
	}
	if c.skip(",") {
		e.Fields = c.fields()
		c.failed = c.failed || len(e.Fields) == 0
	}
	if !c.skip("}") {
		c.failed = true
	}
}

// key takes a key: a string, or that of a task.
func (c *scanner) key() (k Key) {
	if len(c.rest) > 0 && c.rest[0] == '"' {
		c.path = c.text(c.path)
		return Key{Path: c.path}
	}
	if !c.skip(`{"jobPath":`) {
		c.failed = true
		return Key{}
	}
	c.path = c.text(c.path)
	if !c.skip(`,"taskId":`) {
		c.failed = true
		return Key{}
	}
	k = Key{Path: c.path, TaskID: c.text("")}
	if !c.skip("}") || k.TaskID == "" {
		c.failed = true
	}
	return k
}

// text takes a string without escapes. It returns last, if that is the same.
func (c *scanner) text(last string) string {
	end := -1
	if len(c.rest) > 0 && c.rest[0] == '"' {
		end = bytes.IndexByte(c.rest[1:], '"')
	}
	if end < 0 || bytes.IndexByte(c.rest[1:1+end], '\\') >= 0 {
		c.failed = true
		return ""
	}
	raw := c.rest[1 : 1+end]
	c.rest = c.rest[end+2:]
	if string(raw) == last {
		return last
	}
	return string(raw)
}

// id takes an EventId.
func (c *scanner) id() ID {
	n, at := int64(0), 0
	for ; at < len(c.rest) && at < 17 && '0' <= c.rest[at] && c.rest[at] <= '9'; at++ {
		n = 10*n + int64(c.rest[at]-'0')
	}
	c.rest = c.rest[at:]
	if at == 0 || n > int64(MaxID) {
		c.failed = true
	}
	return ID(n)
}

// fields takes the members up to the end of the event. One that is no own field is not where [Event.AppendJSON] writes it.
func (c *scanner) fields() []byte {
	depth, named := 0, false
	for at := 0; at < len(c.rest); at++ {
		switch c.rest[at] {
		case '"':
			end := endOfText(c.rest[at+1:])
			if end < 0 || depth == 0 && !named && !isField(c.rest[at+1:at+1+end]) {
				c.failed = true
				return nil
			}
			at += 1 + end
			named = true
		case '{', '[':
			depth++
		case ',':
			named = named && depth > 0
		case ']':
			depth--
		case '}':
			if depth--; depth < 0 {
				fields := c.rest[:at:at]
				c.rest = c.rest[at:]
				return fields
			}
		}
	}
	c.failed = true
	return nil
}

// isField reports whether a name is surely that of an event's own field.
func isField(name []byte) bool {
	switch string(name) {
	case "eventId", "key", "TYPE":
		return false
	}
	return bytes.IndexByte(name, '\\') < 0
}

// endOfText returns where the quote is that ends a string; -1 if there is none.
func endOfText(text []byte) int {
	for from := 0; ; {
		n := bytes.IndexByte(text[from:], '"')
		if n < 0 {
			return -1
		}
		end, escapes := from+n, 0
		for end-escapes > 0 && text[end-escapes-1] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return end
		}
		from = end + 1
	}
}
