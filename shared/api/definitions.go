package api

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

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

// defining is what the operations on definitions share.
type defining struct{ catalog Catalog }

func describeDefinitions() *operation {
	return &operation{
		ID: "definitions", Tags: []string{"Definitions"}, Summary: "What is declared",
		Description: "The set in force, as its file would have it. A PUT of it changes nothing.",
		Responses:   answers(http.StatusOK, typeJSON, ref("Definitions")),
	}
}

func (d *defining) show(x *exchange) error {
	set, err := d.catalog.Refresh(x.r.Context())
	if err != nil {
		return err
	}
	x.json(http.StatusOK, set.JSON())
	return nil
}

func describePutDefinitions() *operation {
	dry := yesNo("")
	dry.Default = false
	op := &operation{
		ID: "putDefinitions", Tags: []string{"Definitions"}, Summary: "Replace what is declared",
		Description: "Replaces the set in force as a whole, all or nothing, and emits an event for each object that was added, replaced or " +
			"removed. Every mistake is listed, with its line. The sections tokens, journal, history, targets, metrics, dashboard, drain and file_orders, and " +
			"new commands, are for the server's own file: 422.",
		Parameters: params{queryParam("dry_run", "Only tell what would change", false, dry)},
		Body:       jsonBody(ref("Definitions"), definitionsExample()),
		Responses:  answers(http.StatusOK, typeJSON, ref("DefinitionChanges")),
		failures:   []int{422},
	}
	for _, kind := range typesYAML {
		op.Body.Content[kind] = &media{Schema: ref("Definitions")}
	}
	return op
}

func (d *defining) put(x *exchange) error {
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
	do := d.catalog.Apply
	if dry {
		do = d.catalog.Plan
	}
	changes, err := do(x.r.Context(), set, definition.FromAPI)
	if err != nil {
		return definitionProblem(err)
	}
	return x.value(http.StatusOK, struct {
		definition.Changes
		Warnings []string `json:"warnings,omitempty"`
	}{changes, slices.Concat(set.Warnings(), set.Longer(x.api.maxTask), schedule.Warnings(set, time.Now()))})
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
