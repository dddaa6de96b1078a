package store

import (
	"bytes"
	"encoding/json"
	"sync"
)

// Encode returns a value as the JSON that items hold. What matters within HTML only is not escaped, and raw JSON stays as it is
// spelled but for its spaces, so that a text takes about as many bytes as it has: each of `<`, `>` and `&` would take six.
// Control characters take up to six; whoever bounds texts counts what this returns. The error is that of a value that has
// no JSON, such as raw JSON that is none.
func Encode(value any) ([]byte, error) {
	e, _ := encoders.Get().(*encoder)
	defer encoders.Put(e)
	err := e.json.Encode(value)
	text := bytes.TrimSuffix(e.written, []byte("\n")) // the encoder ends the line
	e.written = nil
	return text, err
}

// encoder is a JSON encoder and what it has written last.
type encoder struct {
	json    *json.Encoder
	written []byte
}

var encoders = sync.Pool{New: func() any {
	e := &encoder{}
	e.json = json.NewEncoder(e)
	e.json.SetEscapeHTML(false)
	return e
}}

// Write appends; the encoder does it once for each value.
func (e *encoder) Write(p []byte) (int, error) {
	e.written = append(e.written, p...)
	return len(p), nil
}
