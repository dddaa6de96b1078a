package api

// The types of this file are the parts of OpenAPI 3.1 and JSON Schema 2020-12 that the description of this API uses, by the
// names that they have there.

type document struct {
	OpenAPI    string                           `json:"openapi"`
	Info       info                             `json:"info"`
	Servers    []server                         `json:"servers"`
	Tags       []tag                            `json:"tags"`
	Paths      map[string]map[string]*operation `json:"paths"` // by path and method
	Components components                       `json:"components"`
}

type info struct {
	Title       string  `json:"title"`
	Version     string  `json:"version"`
	Description string  `json:"description"`
	License     license `json:"license"`
}

type license struct {
	Name       string `json:"name"`
	Identifier string `json:"identifier"` // of SPDX
}

type server struct {
	URL string `json:"url"`
}

type tag struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

type components struct {
	Schemas         members                   `json:"schemas"`
	SecuritySchemes map[string]securityScheme `json:"securitySchemes"`
}

type securityScheme struct {
	Type        string `json:"type"`
	Scheme      string `json:"scheme,omitempty"`
	In          string `json:"in,omitempty"`
	Name        string `json:"name,omitempty"`
	Description string `json:"description"`
}

// operation describes one call. What every call has in common is added by [route.operation].
type operation struct {
	ID          string                `json:"operationId"`
	Tags        []string              `json:"tags"`
	Summary     string                `json:"summary"`
	Description string                `json:"description,omitempty"`
	Parameters  params                `json:"parameters,omitempty"`
	Body        *requestBody          `json:"requestBody,omitempty"`
	Responses   responses             `json:"responses"`
	Security    []map[string][]string `json:"security"` // each of them is enough

	failures []int // statuses beyond those that follow from the right, the body and the parameters: see [route.operation]
}

type params []*param

// param is a parameter or, without In and Name, a header of a response.
type param struct {
	Name        string  `json:"name,omitempty"`
	In          string  `json:"in,omitempty"`
	Description string  `json:"description,omitempty"`
	Required    bool    `json:"required,omitempty"`
	Style       string  `json:"style,omitempty"`
	Explode     *bool   `json:"explode,omitempty"`
	Schema      *schema `json:"schema"`
}

type requestBody struct {
	Required bool              `json:"required"`
	Content  map[string]*media `json:"content"` // by media type
}

// responses are by status.
type responses map[string]*response

type response struct {
	Description string            `json:"description"`
	Headers     map[string]*param `json:"headers,omitempty"`
	Content     map[string]*media `json:"content,omitempty"` // by media type
}

type media struct {
	Schema  *schema `json:"schema"`
	Example any     `json:"example,omitempty"`
}

// schema describes JSON values. A field with its zero value says nothing; so a bound of 0 is one where the field is any.
type schema struct {
	Ref         string `json:"$ref,omitempty"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	Type        string `json:"type,omitempty"`
	Format      string `json:"format,omitempty"`
	Pattern     string `json:"pattern,omitempty"`
	Default     any    `json:"default,omitempty"`
	Examples    []any  `json:"examples,omitempty"`
	Enum        []any  `json:"enum,omitempty"`
	Minimum     any    `json:"minimum,omitempty"`
	Maximum     any    `json:"maximum,omitempty"`
	MinLength   int    `json:"minLength,omitempty"`
	MaxLength   int    `json:"maxLength,omitempty"`

	Items    *schema `json:"items,omitempty"`
	MinItems int     `json:"minItems,omitempty"`
	MaxItems int     `json:"maxItems,omitempty"`

	Properties    members  `json:"properties,omitempty"`
	PropertyNames *schema  `json:"propertyNames,omitempty"`
	Additional    any      `json:"additionalProperties,omitempty"` // whether others are possible, or their schema
	Required      []string `json:"required,omitempty"`

	OneOf []*schema `json:"oneOf,omitempty"`
	AnyOf []*schema `json:"anyOf,omitempty"`
	Not   *schema   `json:"not,omitempty"`

	Codes map[string]string `json:"x-codes,omitempty"` // what each code of a problem means
}

// members are the properties of an object, by name.
type members map[string]*schema
