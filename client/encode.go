package client

import (
	"bytes"
	"encoding/json"
)

// encode returns a value as the JSON of a request. What matters within HTML only is not escaped: each of `<`, `>` and `&` would
// take six bytes, and a value that the server takes would become one that it refuses as too large.
func encode(value any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil // the encoder ends the line
}
