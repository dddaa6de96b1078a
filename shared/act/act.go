package act

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
)

// Act is one thing that may be done: a request to the API, which is said before it is made.
type Act struct {
	Name    string  // as "queue.suspend"
	Label   string  // of its button
	Says    string  // what will happen, with {parameters} for values
	Method  string  // of the request
	Path    string  // with {parameters}, which are escaped, also in a query
	Fields  []Field // members of the request's body; empty: it has none
	Whole   string  // the field that is the whole body, instead of a member; "": none is
	Header  string  // a further header of the request, whose value is the parameter Param; "": none
	Param   string  // the parameter that is the value of Header
	Command string  // of the command line, as "queue suspend"
}

// Kind is the type of a field, as JSON Schema calls it.
type Kind string

// The kinds of fields. Of a field of any kind the value is JSON, or else text.
const (
	Text    Kind = "string"
	Object  Kind = "object"
	Number  Kind = "integer"
	Boolean Kind = "boolean"
	Any     Kind = ""
)

// Field is a member of the body of an act's request.
type Field struct {
	Name     string
	Kind     Kind
	Required bool
	Choices  []string // the only values; empty: all
}

// Request is what to send to the API.
type Request struct {
	Method string
	Target string // path and query
	Header string // name of a further header; "": none
	Value  string // of that header
	Body   string // "": none
}

// FieldError says that a value of an act cannot be used.
type FieldError struct{ Name, Want string }

// Error names the field, and what it should have.
func (e *FieldError) Error() string { return fmt.Sprintf("%s: want %s", e.Name, e.Want) }

// Named returns the act of that name, nil if there is none.
func Named(name string) *Act {
	for i := range All {
		if All[i].Name == name {
			return &All[i]
		}
	}
	return nil
}

// Parameters returns the names in braces of the act's path, in their order, and after them that of its header's value.
func (a *Act) Parameters() (names []string) {
	for rest := a.Path; ; {
		_, after, found := strings.Cut(rest, "{")
		if !found {
			break
		}
		name, more, _ := strings.Cut(after, "}")
		names, rest = append(names, name), more
	}
	if a.Param != "" {
		names = append(names, a.Param)
	}
	return names
}

// Target returns the path and the query of the act's request.
func (a *Act) Target(values url.Values) string {
	path, query, asked := strings.Cut(a.Path, "?")
	path = Fill(path, values, url.PathEscape)
	if asked {
		path += "?" + Fill(query, values, url.QueryEscape)
	}
	return path
}

// Sentence returns what the act says before it is done.
func (a *Act) Sentence(values url.Values) string {
	return Fill(a.Says, values, func(value string) string { return value })
}

// Request returns what to send to the API for these values. The error is a *FieldError if one cannot be used.
func (a *Act) Request(values url.Values) (Request, error) {
	r := Request{Method: a.Method, Target: a.Target(values), Header: a.Header}
	if a.Header != "" {
		r.Value = values.Get(a.Param)
	}
	if a.Whole != "" {
		r.Body = values.Get(a.Whole)
		return r, nil
	}
	members := make(map[string]any)
	for _, f := range a.Fields {
		value := values.Get(f.Name)
		if strings.TrimSpace(value) == "" {
			continue
		}
		member, err := f.member(value)
		if err != nil {
			return r, err
		}
		members[f.Name] = member
	}
	if len(members) == 0 {
		return r, nil
	}
	body, err := json.Marshal(members)
	r.Body = string(body)
	return r, err
}

// member returns a value as a member of the body.
func (f *Field) member(value string) (any, error) {
	is := json.Valid([]byte(value))
	switch {
	case f.Kind == Text, f.Kind == Any && !is:
		return value, nil
	case f.Kind == Object && !is:
		return nil, &FieldError{f.Name, `a JSON object, such as {"name":"ada"}`}
	case f.Kind == Number && !is:
		return nil, &FieldError{f.Name, "a number"}
	}
	return json.RawMessage(value), nil
}

// Fill puts values in the place of {parameters}. A value is not looked through for parameters.
func Fill(text string, values url.Values, escape func(string) string) string {
	var pairs []string
	for name := range values {
		pairs = append(pairs, "{"+name+"}", escape(values.Get(name)))
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// ContentType returns the type of the body, which is not empty: JSON, or YAML, of which JSON is a part, where the API takes that.
func (r Request) ContentType() string {
	if r.Method == "PUT" {
		return "application/yaml"
	}
	return "application/json"
}
