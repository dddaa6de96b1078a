package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/millrace/millrace/shared/definition"
	reading "github.com/millrace/millrace/shared/strict"
)

// Editor changes single objects of the set in force; a [definition.Catalog] is one.
type Editor interface {
	Edit(ctx context.Context, from definition.Origin, change func(inForce *definition.Set) (*definition.Set, error)) (definition.Changes, error)
}

// edit makes another set of the one in force, and returns whether the object was there before.
type edit func(inForce *definition.Set) (after *definition.Set, there bool, err error)

// put declares the object that the body is, and responds by show: with 201 where there was none of the name.
func (x *exchange) put(e Editor, name string, into func(*definition.Set, []byte) (*definition.Set, bool, error), show func(x *exchange, status int) error) error {
	b := take()
	defer b.give()
	if err := x.read(b); err != nil {
		return err
	}
	body, err := objectNamed(b.bytes, name)
	if err != nil {
		return err
	}
	there, err := x.declare(e, func(inForce *definition.Set) (*definition.Set, bool, error) { return into(inForce, body) })
	switch {
	case err != nil:
		return ofBody(err)
	case there:
		return show(x, http.StatusOK)
	default:
		return show(x, http.StatusCreated)
	}
}

// declare puts the set that change makes in force.
func (x *exchange) declare(e Editor, change edit) (there bool, err error) {
	_, err = e.Edit(x.r.Context(), definition.FromAPI, func(inForce *definition.Set) (after *definition.Set, err error) {
		after, there, err = change(inForce)
		return after, err
	})
	return there, err
}

// remove takes an object out of the set in force, and returns whether it was there.
func (x *exchange) remove(e Editor, name string, outOf func(*definition.Set, string) (*definition.Set, bool)) (there bool, err error) {
	there, err = x.declare(e, func(inForce *definition.Set) (*definition.Set, bool, error) {
		after, there := outOf(inForce, name)
		return after, there, nil
	})
	return there, definitionProblem(err)
}

// ofBody returns what a client may know of an object that was refused.
func ofBody(err error) error {
	malformed, ok := errors.AsType[*reading.Error](err)
	if !ok {
		return definitionProblem(err)
	}
	mistakes := slices.Clone(malformed.Mistakes)
	for i := range mistakes {
		mistakes[i].Line = 0 // the body was written anew
	}
	return mistaken(problem(codeOf(mistakes), "nothing was changed"), mistakes)
}

func nameIn(object []byte) string {
	var named struct{ Name string }
	_ = json.Unmarshal(object, &named) // without a name it is ""
	return named.Name
}

// objectNamed returns the body, which is an object, with the name that the path has.
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
	if said := members["name"]; said != nil && nameIn(value) != name {
		return nil, invalid("body.name", "is not the name in the path; leave it out")
	}
	if members["name"], err = json.Marshal(name); err != nil {
		return nil, err
	}
	return json.Marshal(members)
}
