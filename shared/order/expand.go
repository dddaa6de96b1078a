package order

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/millrace/millrace/shared/definition"
)

// values are what ${NAME} means in a wait: an order's variables, and its id.
type values map[string]json.RawMessage

// values returns what ${NAME} means for the order. ${id} is its id, whatever its variables are.
func (o *Order) values() (values, error) {
	all, err := readVariables(o.Variables)
	if err != nil {
		return nil, err
	}
	v := values{"id": encode(o.ID)}
	for name, value := range all {
		if name != "id" {
			v[name] = value
		}
	}
	return v, nil
}

var errNoVariable = errors.New("order: no such variable")

// expand returns a value of a definition with ${NAME} replaced in its texts. A text that is nothing but ${NAME} becomes the variable
// itself, so a number stays a number; within a longer text it becomes a part of that.
func (v values) expand(value any) (any, error) {
	switch is := value.(type) {
	case string:
		if name, alone := onlyName(is); alone {
			return v.get(name)
		}
		return v.text(is)
	case []any:
		list := make([]any, len(is))
		for i := range is {
			var err error
			if list[i], err = v.expand(is[i]); err != nil {
				return nil, err
			}
		}
		return list, nil
	case map[string]any:
		object := maps.Clone(is)
		for name := range object {
			var err error
			if object[name], err = v.expand(object[name]); err != nil {
				return nil, err
			}
		}
		return object, nil
	}
	return value, nil
}

// onlyName returns the name of a text that is ${NAME} as a whole.
func onlyName(text string) (name string, alone bool) {
	name, ok := strings.CutPrefix(text, "${")
	if !ok {
		return "", false
	}
	name, rest, closed := strings.Cut(name, "}")
	return name, closed && rest == ""
}

func (v values) get(name string) (json.RawMessage, error) {
	value, ok := v[name]
	if !ok {
		return nil, fmt.Errorf("%w: %s", errNoVariable, name)
	}
	return value, nil
}

// text returns a text with ${NAME} replaced: by what a text says, and by the JSON of other values.
func (v values) text(of string) (string, error) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(of, "${")
		name, after, closed := strings.Cut(rest, "}")
		if !found || !closed {
			b.WriteString(of)
			return b.String(), nil
		}
		value, err := v.get(name)
		if err != nil {
			return "", err
		}
		var said string
		if json.Unmarshal(value, &said) != nil {
			said = string(value)
		}
		b.WriteString(before)
		b.WriteString(said)
		of = after
	}
}

// where returns the conditions of a wait for the order, as far as its variables are there.
func (o *Order) where(w *definition.Wait) map[string]any {
	wanted := maps.Clone(w.Where)
	v, err := o.values()
	if err != nil {
		return wanted
	}
	for name := range wanted {
		if value, err := v.expand(wanted[name]); err == nil {
			wanted[name] = value
		}
	}
	return wanted
}
