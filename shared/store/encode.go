package store

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// asStandard has the meaning of encoding/json, in half of its time; without HTML's escapes, which would take six bytes each.
var asStandard = json.JoinOptions(jsonv1.DefaultOptionsV1(), jsontext.EscapeForHTML(false))

// Encode returns a value as the JSON that items hold. It does not escape `<`, `>` and `&`, and keeps the spelling of raw JSON except its
// spaces. Control characters take up to six bytes, so bound a text by the length of what Encode returns. The error is that of a value
// without a JSON form, such as invalid raw JSON.
func Encode(value any) ([]byte, error) { return json.Marshal(value, asStandard) }

// Decode reads the JSON that items hold into a target as json.Unmarshal of encoding/json does. Targets have no [encoding/json.Number],
// which it does not know.
func Decode(text []byte, target any) error { return json.Unmarshal(text, target, asStandard) }
