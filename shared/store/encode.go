package store

import (
	"bytes"
	"encoding/json"
	"sync"

	fast "github.com/go-json-experiment/json"
	like "github.com/go-json-experiment/json/v1"
)

// Encode returns a value as the JSON that items hold. It does not escape `<`, `>` and `&`, which would take six bytes each, and
// keeps the spelling of raw JSON except its spaces. Control characters take up to six bytes, so bound a text by the length of
// what Encode returns. The error is that of a value without a JSON form, such as invalid raw JSON.
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

// Write appends; the JSON encoder calls it once for each value.
func (e *encoder) Write(p []byte) (int, error) {
	e.written = append(e.written, p...)
	return len(p), nil
}

// Decode reads the JSON that items hold into a target as json.Unmarshal does, in less than half of the time. Targets have no
// [json.Number], which it does not know.
func Decode(text []byte, target any) error { return fast.Unmarshal(text, target, asStandard) }

// asStandard has the meaning of encoding/json.
var asStandard = like.DefaultOptionsV1()
