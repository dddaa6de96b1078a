package api

import (
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/millrace/millrace/shared/event"
)

// This file describes what operations take and return where they are not structs that huma could look at.

func text(doc string) *huma.Schema { return &huma.Schema{Type: "string", Description: doc} }

func whole(doc string, least float64) *huma.Schema {
	return &huma.Schema{Type: "integer", Description: doc, Minimum: &least}
}

func constant(value string) *huma.Schema { return choice("", value) }

func choice(doc string, words ...string) *huma.Schema {
	s := text(doc)
	for _, word := range words {
		s.Enum = append(s.Enum, word)
	}
	return s
}

func listOf(item *huma.Schema) *huma.Schema { return &huma.Schema{Type: "array", Items: item} }

func oneOf(schemas ...*huma.Schema) *huma.Schema { return &huma.Schema{OneOf: schemas} }

func ref(name string) *huma.Schema { return &huma.Schema{Ref: "#/components/schemas/" + name} }

type members map[string]*huma.Schema

// object describes an object that has these members; more says whether it may have others.
func object(doc string, all members, more bool, required ...string) *huma.Schema {
	return &huma.Schema{Type: "object", Description: doc, Properties: all, AdditionalProperties: more, Required: required}
}

// answers describes the one response of success.
func answers(status int, kind string, schema *huma.Schema) map[string]*huma.Response {
	return map[string]*huma.Response{strconv.Itoa(status): {
		Description: http.StatusText(status),
		Headers:     map[string]*huma.Param{"X-Request-Id": requestIDHeader()},
		Content:     map[string]*huma.MediaType{kind: {Schema: schema}},
	}}
}

// jsonBody describes a body that must be there.
func jsonBody(schema *huma.Schema, example any) *huma.RequestBody {
	return &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{typeJSON: {Schema: schema, Example: example}}}
}

func eventID(doc string) *huma.Schema {
	s, most := whole(doc, 0), float64(event.MaxID)
	s.Format, s.Maximum = "int64", &most
	return s
}

// idempotencyKey describes the header Idempotency-Key.
func idempotencyKey() *huma.Param {
	least, most := 1, maxKey
	return &huma.Param{
		Name: "Idempotency-Key", In: "header",
		Description: "Makes the request happen once, however often it is sent within 24 h",
		Schema:      &huma.Schema{Type: "string", Pattern: "^[!-~]+$", MinLength: &least, MaxLength: &most},
	}
}
