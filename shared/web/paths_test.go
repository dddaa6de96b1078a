package web_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/millrace/millrace/shared/api"
)

// program makes a request as what is no browser does: it names no HTML, and has no session.
func (s *server) program(method, path string, headers ...string) response {
	s.t.Helper()
	r := s.browser().request(method, path, "")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return s.browser().send(r)
}

// A path of the dashboard's own with another method than it has is a 405 that lists those, for everybody.
func TestOtherMethods(t *testing.T) {
	s := start(t)
	b := s.signedIn("admin-secret")
	for _, c := range []struct{ method, path, allow string }{
		{"PUT", "/login", "GET, HEAD, POST, OPTIONS"}, {"GET", "/logout", "POST, OPTIONS"}, {"DELETE", "/", "GET, HEAD, OPTIONS"}, {"POST", "/", "GET, HEAD, OPTIONS"},
		{"POST", "/orders/a/b/7", "GET, HEAD, OPTIONS"}, {"PATCH", "/act", "GET, HEAD, POST, OPTIONS"}, {"POST", "/assets/style.css", "GET, HEAD, OPTIONS"},
	} {
		page := b.do(b.request(c.method, c.path, ""))
		if page.StatusCode != http.StatusMethodNotAllowed || page.Header.Get("Allow") != c.allow || !strings.Contains(page.body, "<h1>Method Not Allowed</h1>") {
			t.Errorf("%s %s by a browser: %d, Allow: %s\n%s", c.method, c.path, page.StatusCode, page.Header.Get("Allow"), page.body)
		}
		got := s.program(c.method, c.path)
		wantProblem(t, got, http.StatusMethodNotAllowed, api.CodeMethod)
		if allow := got.Header.Get("Allow"); allow != c.allow {
			t.Errorf("%s %s: Allow: %s, want %s", c.method, c.path, allow, c.allow)
		}
		if got := s.program("OPTIONS", c.path); got.StatusCode != http.StatusNoContent || got.Header.Get("Allow") != c.allow {
			t.Errorf("OPTIONS %s: %d, Allow: %s", c.path, got.StatusCode, got.Header.Get("Allow"))
		}
	}
}

// What is no browser, and has no session, is told by problems, as by the API.
func TestProblemsOfPrograms(t *testing.T) {
	s := start(t)
	for _, path := range []string{"/", "/jobs", "/live", "/act?do=queue.purge&name=main"} {
		got := s.program("GET", path)
		wantProblem(t, got, http.StatusUnauthorized, api.CodeUnauthorized)
		if challenge := got.Header.Get("WWW-Authenticate"); challenge != "Bearer" { // Basic would make a browser ask for a password
			t.Errorf("GET %s: WWW-Authenticate: %s", path, challenge)
		}
	}
	wantProblem(t, s.program("POST", "/login", "Origin", "null"), http.StatusForbidden, api.CodeForbidden)
	for _, path := range []string{"/assets/", "/assets/none.js", "/assets/%2e%2e", "/assets", "/nosuch"} {
		wantProblem(t, s.program("GET", path), http.StatusNotFound, api.CodeNotFound)
	}
}

func wantProblem(t *testing.T, got response, status int, code api.Code) {
	t.Helper()
	var p api.Problem
	err := json.Unmarshal([]byte(got.body), &p)
	if err != nil || got.StatusCode != status || p.Status != status || p.Code != code || p.Detail == "" || got.Header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("%s %s: %d, %s, want a problem with %d and the code %s\n%s", got.Request.Method, got.Request.URL.Path, got.StatusCode, got.Header.Get("Content-Type"), status, code, got.body)
	}
}

// An unknown page is told by a page; below the API's paths nothing changes.
func TestUnknownPages(t *testing.T) {
	s := start(t)
	b := s.signedIn("viewer-secret")
	for _, path := range []string{"/nosuch", "/jobs/", "/assets/", "/assets/none.js", "/docs/none"} {
		got := b.get(path)
		if got.StatusCode != http.StatusNotFound || !strings.Contains(got.body, "<h1>Not Found</h1>") || got.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("GET %s: %d, %s\n%s", path, got.StatusCode, got.Header.Get("Cache-Control"), got.body)
		}
	}
	if got := s.browser().get("/nosuch"); got.StatusCode != http.StatusNotFound {
		t.Errorf("without a session: %d, want 404", got.StatusCode)
	}
	for path, want := range map[string]int{"/api/v1/nosuch": 401, "//api/v1/jobs": 401, "/tasks/x": 401, "/jobscheduler": 401, "/openapi.json": 200, "/docs": 200} {
		if got := b.get(path); got.StatusCode != want || want == 401 && got.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("GET %s: %d, %s, want the API's %d", path, got.StatusCode, got.Header.Get("Content-Type"), want)
		}
	}
}
