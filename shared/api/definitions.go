package api

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/schedule"
	reading "github.com/millrace/millrace/shared/strict"
)

// Catalog keeps the definitions in force; a [definition.Catalog] is one.
type Catalog interface {
	Refresh(ctx context.Context) (*definition.Set, error)
	Plan(ctx context.Context, set *definition.Set, from definition.Origin) (definition.Changes, error)
	Apply(ctx context.Context, set *definition.Set, from definition.Origin) (definition.Changes, error)
}

// typesYAML are the media types of YAML: that of RFC 9512, and those that were used before.
var typesYAML = []string{"application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml"}

// Define mounts GET and PUT definitions.
func Define(b Catalog) Resource {
	return func(a *API) {
		maps.Copy(a.typed.OpenAPI().Components.Schemas.Map(), definitionSchemas())
		a.route(operation{
			Operation: huma.Operation{
				Method: http.MethodGet, Path: v1 + "/definitions", OperationID: "definitions", Tags: []string{"Definitions"},
				Summary:     "What is declared",
				Description: "The set in force, as its file would have it. A PUT of it changes nothing.",
				Responses:   answers(http.StatusOK, typeJSON, ref("Definitions")),
				Errors:      []int{503},
			},
			right:  Read,
			handle: func(x *exchange) error { return x.showDefinitions(b) },
		})
		a.route(operation{
			Operation: describePutDefinitions(),
			right:     Administer,
			handle:    func(x *exchange) error { return x.putDefinitions(b) },
		})
	}
}

func (x *exchange) showDefinitions(b Catalog) error {
	set, err := b.Refresh(x.r.Context())
	if err != nil {
		return err
	}
	x.json(http.StatusOK, set.JSON())
	return nil
}

func (x *exchange) putDefinitions(b Catalog) error {
	dry, err := x.dryRun()
	if err != nil {
		return err
	}
	body := take()
	defer body.give()
	if err := x.readDocument(body); err != nil {
		return err
	}
	set, err := definition.Read("body", body.bytes)
	if err != nil {
		return definitionProblem(err)
	}
	do := b.Apply
	if dry {
		do = b.Plan
	}
	changes, err := do(x.r.Context(), set, definition.FromAPI)
	if err != nil {
		return definitionProblem(err)
	}
	return x.value(http.StatusOK, struct {
		definition.Changes
		Warnings []string `json:"warnings,omitempty"`
	}{changes, schedule.Warnings(set, time.Now())})
}

// dryRun reads whether nothing is to be changed.
func (x *exchange) dryRun() (bool, error) {
	q, err := x.query()
	if err != nil {
		return false, err
	}
	value, given, err := q.one("dry_run")
	switch {
	case err != nil:
		return false, err
	case given && value != "true" && value != "false":
		return false, invalid("query.dry_run", "want true or false")
	}
	return value == "true", nil
}

// readDocument reads a body in JSON or YAML.
func (x *exchange) readDocument(b *buffer) error {
	if said := first(x.r.Header, "Content-Type"); said != "" {
		kind, params, err := mime.ParseMediaType(said)
		charset, named := params["charset"]
		known := kind == typeJSON || slices.Contains(typesYAML, kind)
		if err != nil || !known || named && !strings.EqualFold(charset, "utf-8") {
			return problem(CodeMediaType, "want application/yaml or application/json in UTF-8").at("header.Content-Type")
		}
	}
	return x.readPlain(b)
}

// definitionProblem returns what a client may know of a set that was refused: every mistake with its line.
func definitionProblem(err error) error {
	if malformed, ok := errors.AsType[*reading.Error](err); ok {
		return mistaken(problem(codeOf(malformed.Mistakes), "nothing was applied"), malformed.Mistakes)
	}
	if only, ok := errors.AsType[*definition.FileOnly](err); ok {
		return mistaken(problem(CodeImpossible, "nothing was applied"), only.Mistakes)
	}
	if errors.Is(err, definition.ErrTooLarge) {
		return problem(CodeTooLarge, "the set is too large").at("body")
	}
	return err
}

// codeOf returns [CodeTooLarge] if one of the mistakes is that something is too large, [CodeInvalid] otherwise.
func codeOf(mistakes []reading.Mistake) Code {
	if slices.ContainsFunc(mistakes, func(m reading.Mistake) bool { return m.TooLarge }) {
		return CodeTooLarge
	}
	return CodeInvalid
}

// maxMistakes is how many mistakes one response lists, so that it does not grow larger than the request.
const maxMistakes = 1000

func mistaken(p *Problem, mistakes []reading.Mistake) *Problem {
	for _, m := range mistakes[:min(len(mistakes), maxMistakes)] {
		location, message := "body", m.Message
		if m.Path != "" {
			location += "." + m.Path
		}
		if m.Line > 0 {
			message = fmt.Sprintf("line %d: %s", m.Line, message)
		}
		p.Errors = append(p.Errors, FieldError{Location: location, Message: message})
	}
	if len(mistakes) == 1 {
		p.Detail += ", as there is a mistake"
	} else {
		p.Detail += fmt.Sprintf(", as there are %d mistakes", len(mistakes))
	}
	p.Detail += "; the first is " + p.Errors[0].Location + ": " + p.Errors[0].Message
	p.Message = p.Detail
	return p
}
