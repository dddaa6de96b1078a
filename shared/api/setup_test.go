package api_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/api"
)

const base = "/jobscheduler/master/api"

// bundle is an API over a journal of its own.
type bundle struct {
	api     *api.API
	journal *fakeJournal
	logs    *bytes.Buffer
}

// tokens are one of each role; the secret is the role's name followed by "-secret".
func tokens() []access.Token {
	var all []access.Token
	for _, role := range []access.Role{access.Viewer, access.Producer, access.Consumer, access.Worker, access.Operator, access.Admin} {
		all = append(all, access.NewToken(string(role), role, secret(role)))
	}
	return all
}

func secret(role access.Role) string { return string(role) + "-secret" }

func setup(t *testing.T, change ...func(*api.Options)) *bundle {
	t.Helper()
	b := &bundle{journal: newFake(), logs: &bytes.Buffer{}}
	options := api.Options{Tokens: tokens(), CanStream: true, Log: b.log()}
	for _, c := range change {
		c(&options)
	}
	b.api = api.New(options, api.Emit(b.journal), api.Events(b.journal), api.Objects(b.journal), api.Operations(api.Probes{}))
	return b
}

func (b *bundle) log() *slog.Logger {
	return slog.New(slog.NewJSONHandler(b.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// reply is a response as a client sees it.
type reply struct {
	*http.Response
	body string
}

// as sends a request with the token of that role, and returns the response; headers are name and value in turn. An empty role
// sends no token.
func (b *bundle) as(t *testing.T, role access.Role, method, target, body string, headers ...string) reply {
	t.Helper()
	return b.do(t, request(t, role, method, target, body, headers...))
}

func request(t *testing.T, role access.Role, method, target, body string, headers ...string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if role != "" {
		r.Header.Set("Authorization", "Bearer "+secret(role))
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

func (b *bundle) do(t *testing.T, r *http.Request) reply {
	t.Helper()
	w := httptest.NewRecorder()
	b.api.ServeHTTP(w, r)
	response := w.Result()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{response, string(body)}
}

// emit appends events as a producer and fails the test if that is refused.
func (b *bundle) emit(t *testing.T, body string) {
	t.Helper()
	if r := b.as(t, access.Producer, "POST", base+"/event", body); r.StatusCode != http.StatusCreated {
		t.Fatalf("emit = %d %s", r.StatusCode, r.body)
	}
}

// problemIn reads a problem and checks what every problem must have.
func problemIn(t *testing.T, r reply) api.Problem {
	t.Helper()
	if kind := r.Header.Get("Content-Type"); kind != "application/problem+json" {
		t.Errorf("Content-Type = %q, want application/problem+json (%d %s)", kind, r.StatusCode, r.body)
	}
	var p api.Problem
	if err := json.Unmarshal([]byte(r.body), &p); err != nil {
		t.Fatalf("problem %q: %v", r.body, err)
	}
	switch {
	case p.Status != r.StatusCode, p.Title != http.StatusText(r.StatusCode):
		t.Errorf("status %d %q in the body of a %d", p.Status, p.Title, r.StatusCode)
	case p.Detail == "", p.Message != p.Detail, p.Code == "", p.Type != "/docs#"+string(p.Code):
		t.Errorf("incomplete problem %s", r.body)
	case p.RequestID == "" || p.RequestID != r.Header.Get("X-Request-Id"):
		t.Errorf("request_id %q, header %q", p.RequestID, r.Header.Get("X-Request-Id"))
	}
	return p
}

// wantProblem checks a refusal: its status, its code and the fields it names.
func wantProblem(t *testing.T, r reply, status int, code api.Code, locations ...string) {
	t.Helper()
	if r.StatusCode != status {
		t.Fatalf("status = %d, want %d: %s", r.StatusCode, status, r.body)
	}
	p := problemIn(t, r)
	if p.Code != code {
		t.Errorf("code = %s, want %s", p.Code, code)
	}
	for i, want := range locations {
		if i >= len(p.Errors) || p.Errors[i].Location != want || p.Errors[i].Message == "" {
			t.Errorf("errors = %+v, want %s", p.Errors, want)
		}
	}
}
