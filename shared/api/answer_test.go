package api_test

import (
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store/memory"
)

// ordered is an API for orders over a real engine with that job chain.
func ordered(t *testing.T, chain definition.JobChain) *bundle {
	t.Helper()
	s := memory.New(memory.Options{})
	j := journal.Open(s, journal.Options{Folds: projection.Folds()})
	t.Cleanup(func() { _ = j.Close() })
	d := declared{&definition.Set{JobChains: []definition.JobChain{chain}}}
	e := order.Open(order.Options{Store: s, Definitions: d, Now: time.Now})
	e.Use(queue.Open(queue.Options{Store: s, Journal: j, Definitions: d, Now: time.Now, Steps: e}))
	return &bundle{api: api.New(api.Options{Tokens: tokens()}, api.Orders(e))}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	b := ordered(t, definition.JobChain{Path: "/c", Nodes: []definition.Node{
		{ID: "P", Prompt: &definition.Prompt{Role: "producer", Answers: map[string]string{"yes": "Q", "no": "Q"}}},
		{ID: "Q", Prompt: &definition.Prompt{Role: "admin", Answers: map[string]string{"yes": "end"}}},
		{ID: "end"},
	}})
	const path = "/api/v1/orders/%2Fc/1/answer"
	if got := b.as(t, access.Operator, "POST", "/api/v1/orders/%2Fc", `{"id":"1"}`); got.StatusCode != 201 || !strings.Contains(got.body, `"obstacles":[{"TYPE":"Prompt"}]`) {
		t.Fatalf("added: %d %s", got.StatusCode, got.body)
	}
	for _, test := range []struct {
		name, path, body string
		role             access.Role
		status           int
		code             api.Code
		at               string
	}{
		{"nobody", path, `{"answer":"yes"}`, "", 401, api.CodeUnauthorized, ""},
		{"no order", "/api/v1/orders/%2Fc/2/answer", `{"answer":"yes"}`, access.Admin, 404, api.CodeNotFound, ""},
		{"no answer", path, `{"comment":"x"}`, access.Operator, 400, api.CodeInvalid, "body.answer"},
		{"no text", path, `{"answer":true}`, access.Operator, 400, api.CodeInvalid, "body.answer"},
		{"null", path, `{"answer":"yes","comment":null}`, access.Operator, 400, api.CodeInvalid, "body.comment"},
		{"long", path, `{"answer":"yes","comment":"` + strings.Repeat("x", order.MaxComment+1) + `"}`, access.Operator, 400, api.CodeInvalid, "body.comment"},
		{"unknown field", path, `{"answer":"yes","why":"x"}`, access.Operator, 400, api.CodeInvalid, "body.why"},
		{"empty", path, ``, access.Operator, 400, api.CodeInvalid, "body"},
		{"not an answer", path, `{"answer":"perhaps"}`, access.Operator, 422, api.CodeImpossible, "body.answer"},
		{"a role without that", path, `{"answer":"yes"}`, access.Viewer, 403, api.CodeForbidden, ""},
		{"another role", path, `{"answer":"yes"}`, access.Worker, 403, api.CodeForbidden, ""},
		{"the role", path, `{"answer":"yes","comment":""}`, access.Producer, 204, "", ""},
		{"the next prompt", path, `{"answer":"yes"}`, access.Operator, 403, api.CodeForbidden, ""},
		{"a role with all", path, `{"answer":"yes","comment":"ok"}`, access.Admin, 204, "", ""},
		{"gone", path, `{"answer":"yes"}`, access.Admin, 404, api.CodeNotFound, ""},
	} {
		got := b.as(t, test.role, "POST", test.path, test.body, "Content-Type", "application/json")
		switch {
		case got.StatusCode != test.status:
			t.Errorf("%s: %d %s, want %d", test.name, got.StatusCode, got.body, test.status)
		case test.status == 204:
		case test.at == "":
			wantProblem(t, got, test.status, test.code)
		default:
			wantProblem(t, got, test.status, test.code, test.at)
		}
	}
}

// An order that waits for something else than a person asks nobody.
func TestAnswersThatNobodyAskedFor(t *testing.T) {
	t.Parallel()
	b := ordered(t, definition.JobChain{Path: "/c", Nodes: []definition.Node{
		{ID: "P", Delay: time.Hour, Prompt: &definition.Prompt{Role: "producer", Answers: map[string]string{"yes": "end"}}}, {ID: "end"},
	}})
	b.as(t, access.Operator, "POST", "/api/v1/orders/%2Fc", `{"id":"1"}`)
	wantProblem(t, b.as(t, access.Admin, "POST", "/api/v1/orders/%2Fc/1/answer", `{"answer":"yes"}`), 409, api.CodeConflict)
}
