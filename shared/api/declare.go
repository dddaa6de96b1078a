package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/millrace/millrace/shared/definition"
	reading "github.com/millrace/millrace/shared/document"
)

// Editor changes single objects of the set in force; a [definition.Book] is one.
type Editor interface {
	Edit(ctx context.Context, from definition.Origin, change func(inForce *definition.Set) (*definition.Set, error)) (definition.Changes, error)
}

// put declares the object that the body is, and answers it by show: with 201 where there was none of the name.
func (x *exchange) put(e Editor, section, name string, show func(x *exchange, status int) error) error {
	b := take()
	defer b.give()
	if err := x.read(b); err != nil {
		return err
	}
	body, err := objectNamed(b.bytes, name)
	if err != nil {
		return err
	}
	there, err := x.declare(e, section, name, body)
	switch {
	case err != nil:
		return err
	case there:
		return show(x, http.StatusOK)
	default:
		return show(x, http.StatusCreated)
	}
}

// declare puts one named object into a section of the set in force, or takes it out where body is nil, and answers whether
// one was there. The set as a whole is read anew, so that the same rules hold as for a file.
func (x *exchange) declare(e Editor, section, name string, body []byte) (there bool, err error) {
	index := 0
	_, err = e.Edit(x.r.Context(), definition.FromAPI, func(inForce *definition.Set) (*definition.Set, error) {
		document := map[string]json.RawMessage{}
		var list []json.RawMessage
		if err := errors.Join(json.Unmarshal(inForce.JSON(), &document), unmarshalIf(document[section], &list)); err != nil {
			return nil, fmt.Errorf("the set in force cannot be taken apart: %w", err)
		}
		index = slices.IndexFunc(list, func(element json.RawMessage) bool { return nameIn(element) == name })
		there = index >= 0
		switch {
		case body == nil && !there:
			return inForce, nil
		case body == nil:
			list = slices.Delete(list, index, index+1)
		case there:
			list[index] = body
		default:
			index, list = len(list), append(list, body)
		}
		text, err := json.Marshal(list)
		if err != nil {
			return nil, err
		}
		document[section] = text
		if text, err = json.Marshal(document); err != nil {
			return nil, err
		}
		return definition.Read("body", text)
	})
	return there, declareProblem(err, fmt.Sprintf("%s[%d]", section, index))
}

func unmarshalIf(text json.RawMessage, into any) error {
	if text == nil {
		return nil
	}
	return json.Unmarshal(text, into)
}

func nameIn(element json.RawMessage) string {
	var named struct{ Name string }
	_ = json.Unmarshal(element, &named) // what has none is not it
	return named.Name
}

// declareProblem answers what a client may know of an object that was refused; its place in the set is the body.
func declareProblem(err error, place string) error {
	malformed, ok := errors.AsType[*reading.Error](err)
	if !ok {
		return definitionProblem(err)
	}
	mistakes := slices.Clone(malformed.Mistakes)
	for i := range mistakes {
		if rest, ok := strings.CutPrefix(mistakes[i].Path, place); ok {
			mistakes[i].Path = strings.TrimPrefix(rest, ".")
			mistakes[i].Line = 0
		}
	}
	return mistaken(problem(CodeInvalid, "nothing was changed"), mistakes)
}

// objectNamed answers a body that is an object with the name that the path has.
func objectNamed(body []byte, name string) ([]byte, error) {
	value, err := parseBody(body)
	if err != nil {
		return nil, err
	}
	if value.Kind() != '{' {
		return nil, invalid("body", "want an object, not %s", kindOfJSON(value))
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(value, &members); err != nil {
		return nil, invalid("body", "want an object")
	}
	if said := members["name"]; said != nil && nameIn(json.RawMessage(value)) != name {
		return nil, invalid("body.name", "is not the name in the path; leave it out")
	}
	if members["name"], err = json.Marshal(name); err != nil {
		return nil, err
	}
	return json.Marshal(members)
}
