package typed

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/millrace/millrace/shared/event"
)

// lineEnds escapes the two characters that are line ends in JavaScript, as encoding/json does.
var lineEnds = strings.NewReplacer("\u2028", `\u2028`, "\u2029", `\u2029`)

// appendText appends a text, which is UTF-8, as a JSON string.
func appendText(dst []byte, text string) []byte {
	if strings.Contains(text, "\u2028") || strings.Contains(text, "\u2029") {
		quoted, _ := jsontext.AppendQuote(nil, text)
		return append(dst, lineEnds.Replace(string(quoted))...)
	}
	dst, _ = jsontext.AppendQuote(dst, text)
	return dst
}

// appendMicro appends a time in microseconds since 1970.
func appendMicro(dst []byte, micro int64) []byte { return event.AppendTime(dst, time.UnixMicro(micro)) }

func stateField(state string) []byte {
	return appendText(append(make([]byte, 0, len(`"state":""`)+len(state)), `"state":`...), state)
}

// readText returns the content of a JSON string; empty if the value is none. It does not allocate for one of the known texts.
func readText[T ~string](value []byte, known ...T) T {
	if len(value) < 2 || value[0] != '"' {
		return ""
	}
	text := value[1 : len(value)-1]
	if bytes.IndexByte(text, '\\') >= 0 {
		text, _ = jsontext.AppendUnquote(nil, value)
	}
	for _, k := range known {
		if string(k) == string(text) {
			return k
		}
	}
	return T(text)
}

// readInt returns a whole number; 0 if the value is none.
func readInt(value []byte) int64 {
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// readMicro returns a time, a JSON string, in microseconds since 1970; 0 if the value is none.
func readMicro(value []byte) int64 {
	at, err := time.Parse(time.RFC3339, string(bytes.Trim(value, `"`)))
	if err != nil {
		return 0
	}
	return at.UnixMicro()
}
