package event

import (
	"bytes"
	"iter"

	"github.com/go-json-experiment/json/jsontext"
)

// Members returns the members of JSON as in [Event.Fields], in their order: each name, with its quotes, and its value as they are
// written. The JSON is compact, as all on the journal; where it is not valid, the iteration ends early. It does not allocate.
func Members(fields []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		for rest := fields; len(rest) > 0; {
			name := before(rest, ':')
			if len(name) == len(rest) {
				return
			}
			value := before(rest[len(name)+1:], ',')
			if !yield(name, value) {
				return
			}
			rest = rest[min(len(name)+1+len(value)+1, len(rest)):]
		}
	}
}

// Spelled returns the name of a member, which is JSON, as a name is spelled that has the same meaning: without escapes that it does
// not need (as in RFC 8785, 3.2.2.2). So two names are the same if their bytes are. It allocates only if there are escapes.
func Spelled(name []byte) []byte {
	if bytes.IndexByte(name, '\\') < 0 {
		return name
	}
	spelled, _ := jsontext.AppendQuote(nil, unquote(name)) // cannot fail: it is UTF-8
	return spelled
}

// before returns the text before the first stop that is outside of strings, objects and arrays; all of it if there is none.
func before(text []byte, stop byte) []byte {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			i += stringEnd(text[i:])
		case c == stop && depth == 0:
			return text[:i]
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
	}
	return text
}

// stringEnd returns where the string at the beginning of text ends: the place of its second quote, or the text's end. Most strings
// have no escapes, so that one search finds it.
func stringEnd(text []byte) int {
	for i := 1; i < len(text); i++ {
		quote := bytes.IndexByte(text[i:], '"')
		if quote < 0 {
			break
		}
		escape := bytes.IndexByte(text[i:i+quote], '\\')
		if escape < 0 {
			return i + quote
		}
		i += escape + 1 // at what is escaped
	}
	return len(text)
}
