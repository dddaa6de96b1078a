package mcp

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/millrace/millrace/shared/act"
)

// tool is one tool: what it is called, what it takes, and its request.
type tool struct {
	name, says string
	reads      bool // it changes nothing
	destroys   bool // what it takes away does not come back
	fields     []act.Field
	ask        func(url.Values) (act.Request, error)
}

// Name returns the name of the tool for an act or an act on many of that name.
func Name(of string) string { return strings.NewReplacer(".", "_", "-", "_").Replace(of) }

// tools returns all tools, those that read first.
func tools() (all []tool) {
	for i := range reads {
		all = append(all, ofRead(&reads[i]))
	}
	for i := range act.All {
		all = append(all, ofAct(&act.All[i]))
	}
	for i := range act.AllMany {
		all = append(all, ofMany(&act.AllMany[i]))
	}
	return all
}

// ofRead returns the tool that reads something.
func ofRead(r *read) tool {
	request := act.Act{Method: "GET", Path: r.path}
	t := tool{name: r.name, says: r.says, reads: true, fields: required(request.Parameters())}
	for _, name := range r.query {
		t.fields = append(t.fields, act.Field{Name: name, Kind: act.Any})
	}
	t.ask = func(values url.Values) (act.Request, error) {
		query, err := url.ParseQuery(r.fixed)
		for _, name := range r.query {
			if value := values.Get(name); value != "" {
				query.Set(name, value)
			}
		}
		target := request.Target(values)
		if encoded := query.Encode(); encoded != "" {
			separator := "?"
			if strings.Contains(target, "?") {
				separator = "&"
			}
			target += separator + encoded
		}
		return act.Request{Method: "GET", Target: target}, err
	}
	return t
}

// ofAct returns the tool that does an act.
func ofAct(a *act.Act) tool {
	t := tool{name: Name(a.Name), says: a.Says, fields: required(a.Parameters()), ask: a.Request}
	t.destroys = a.Method == "DELETE" || a.Name == "queue.purge" || a.Name == "definitions.apply"
	for _, f := range a.Fields {
		if at := slices.IndexFunc(t.fields, func(other act.Field) bool { return other.Name == f.Name }); at < 0 {
			t.fields = append(t.fields, f)
		}
	}
	return t
}

// ofMany returns the tool that begins an act on all that a filter selects, or counts that.
func ofMany(m *act.Many) tool {
	t := tool{name: Name(m.Name) + "_all", says: "An act on all that the filter selects. " + m.Says + " With limit only so many are selected, with per_second no more are done in a second. With dry_run nothing is done, and their number is returned; otherwise the act's id, for show_act.", destroys: m.Kind == "remove"}
	for _, name := range m.Filter {
		t.fields = append(t.fields, act.Field{Name: name, Kind: act.Text})
	}
	t.fields = append(t.fields, act.Portion...)
	t.fields = append(t.fields, act.Field{Name: "dry_run", Kind: act.Boolean, Required: true})
	t.ask = func(values url.Values) (act.Request, error) {
		return m.Request(values, values.Get("dry_run") != "false"), nil
	}
	return t
}

// required returns text fields of those names.
func required(names []string) (fields []act.Field) {
	for _, name := range names {
		fields = append(fields, act.Field{Name: name, Kind: act.Any, Required: true})
	}
	return fields
}

// tool returns the description of the tool for clients.
func (t *tool) tool() *sdk.Tool {
	properties, needs := map[string]any{}, []string{}
	for _, f := range t.fields {
		schema := map[string]any{}
		if f.Kind != act.Any {
			schema["type"] = f.Kind
		}
		if len(f.Choices) > 0 {
			schema["enum"] = f.Choices
		}
		properties[f.Name] = schema
		if f.Required {
			needs = append(needs, f.Name)
		}
	}
	schema := map[string]any{"type": "object", "properties": properties, "required": needs, "additionalProperties": false}
	closed := false
	return &sdk.Tool{Name: t.name, Description: t.says, InputSchema: schema, Annotations: &sdk.ToolAnnotations{ReadOnlyHint: t.reads, DestructiveHint: &t.destroys, OpenWorldHint: &closed}}
}

// request returns the tool's request for the arguments of a call. The error names the argument that is missing or not known.
func (t *tool) request(arguments json.RawMessage) (act.Request, error) {
	given := make(map[string]json.RawMessage)
	if len(arguments) > 0 {
		if err := json.Unmarshal(arguments, &given); err != nil {
			return act.Request{}, fmt.Errorf("the arguments are no JSON object: %w", err)
		}
	}
	values := url.Values{}
	for _, f := range t.fields {
		value, is := given[f.Name]
		if f.Required && !is {
			return act.Request{}, &act.FieldError{Name: f.Name, Want: "a value: it is missing"}
		}
		if is {
			values.Set(f.Name, text(value))
		}
		delete(given, f.Name)
	}
	if len(given) > 0 {
		return act.Request{}, &act.FieldError{Name: slices.Sorted(maps.Keys(given))[0], Want: "nothing: the tool has no such argument"}
	}
	return t.ask(values)
}

// text returns a JSON value as an act is told it: a string as it is.
func text(value json.RawMessage) string {
	var s string
	if json.Unmarshal(value, &s) == nil {
		return s
	}
	return string(value)
}
