package definition

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// joinsAll is the text of a join that waits for all children.
const joinsAll = "all"

// MarshalJSONTo writes the form that definitions have: the text all, or an object with at_least.
func (j Join) MarshalJSONTo(e *jsontext.Encoder) error {
	if j.AtLeast == 0 {
		return e.WriteToken(jsontext.String(joinsAll))
	}
	return json.MarshalEncode(e, struct {
		AtLeast int `json:"at_least"`
	}(j))
}

// UnmarshalJSONFrom reads what MarshalJSONTo writes.
func (j *Join) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	if d.PeekKind() == '"' {
		*j = Join{}
		return d.SkipValue()
	}
	var object struct {
		AtLeast int `json:"at_least"`
	}
	err := json.UnmarshalDecode(d, &object)
	*j = Join(object)
	return err
}
