package client

import (
	"bytes"
	"encoding/json"
)

// encode returns a value as the JSON of a request. It does not escape `<`, `>` and `&`: each would take six bytes, and a value
// within the server's limits would be refused as too large.
func encode(value any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil // the encoder ends the line
}
