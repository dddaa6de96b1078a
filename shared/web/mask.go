package web

import (
	"encoding/json"
	"strings"
)

// hidden is shown in the place of a value that nobody is to see.
const hidden = "•••"

// masks are the names of members whose values pages do not show, in small letters.
type masks map[string]bool

func newMasks(names []string) masks {
	m := make(masks, len(names))
	for _, name := range names {
		m[strings.ToLower(name)] = true
	}
	return m
}

// hide returns a value of the API without what is masked, at any depth. What is given stays as it is.
func (m masks) hide(value any) any {
	if len(m) == 0 {
		return value
	}
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, member := range v {
			if m[strings.ToLower(name)] {
				out[name] = hidden
				continue
			}
			out[name] = m.hide(member)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = m.hide(v[i])
		}
		return out
	}
	return value
}

// restore puts the original's values in the place of those that are hidden in JSON which somebody has edited. Of what is no JSON, or has
// nothing hidden, it returns what is given.
func (m masks) restore(edited string, original any) string {
	if len(m) == 0 || !strings.Contains(edited, hidden) {
		return edited
	}
	decoder := json.NewDecoder(strings.NewReader(edited))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return edited
	}
	return encode(m.refill(value, original), "")
}

// refill is restore of a value.
func (m masks) refill(value, original any) any {
	switch v := value.(type) {
	case map[string]any:
		was, _ := original.(map[string]any)
		for name, member := range v {
			if before, had := was[name]; had && member == hidden && m[strings.ToLower(name)] {
				v[name] = before
				continue
			}
			v[name] = m.refill(member, was[name])
		}
	case []any:
		was, _ := original.([]any)
		for i := range v {
			if i < len(was) {
				v[i] = m.refill(v[i], was[i])
			}
		}
	}
	return value
}
