package web_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/act"
	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/web"
)

// These are what went wrong in other dashboards, each by its name. That stored script never runs is tested in a browser, and that a server without
// tokens does not start where the settings are read.

// TestOpenAfterAnUpgrade: a new process on the same store, with other tokens, is open to nobody who was signed in by a token that it does not have,
// and whose token has another role now has that role.
func TestOpenAfterAnUpgrade(t *testing.T) {
	s := start(t)
	admin, operator := s.signedIn("admin-secret"), s.signedIn("operator-secret")
	renewed := []access.Token{access.NewToken("ada", access.Admin, "another-secret"), access.NewToken("otto", access.Viewer, "operator-secret")}
	s.Config.Handler = web.New(web.Options{API: api.New(api.Options{Tokens: renewed}), Tokens: func() []access.Token { return renewed }, Store: s.store, Now: s.clock})
	for _, path := range []string{"/", "/jobs", "/definitions", "/live", "/act?do=queue.purge&name=main"} {
		if got := admin.get(path); got.StatusCode != http.StatusSeeOther || !strings.HasPrefix(got.Header.Get("Location"), "/login") {
			t.Errorf("%s with the session of a token that is gone: %d, want it led to sign in", path, got.StatusCode)
		}
	}
	if got := operator.get("/act?do=queue.purge&name=main"); got.StatusCode != http.StatusForbidden {
		t.Errorf("an act with the session of a token that may only look now: %d, want 403", got.StatusCode)
	}
}

// TestARoleThatOnlyThePageEnforces: what a viewer's pages do not offer is refused to a viewer who asks for it all the same, by the form and by the
// API: each act of the table, and each on many.
func TestARoleThatOnlyThePageEnforces(t *testing.T) {
	s := start(t)
	b := s.signedIn("viewer-secret")
	given := url.Values{"back": {"/"}, "name": {"x"}, "id": {"x"}, "chain": {"/c"}, "node": {"ask"}, "canvas": {"demo"}, "space": {"WORKER"}, "source": {"x"}, "collection": {"x"}, "stream": {"x"}, "consumer": {"x"}}
	s.call("admin-secret", http.MethodPost, "/api/v1/orders/%2Fc", `{"id":"1"}`)
	for _, got := range []response{
		b.post("/act", url.Values{"do": {"order.answer"}, "chain": {"/c"}, "id": {"1"}, "answer": {"yes"}}),
		s.call("viewer-secret", http.MethodPost, "/api/v1/orders/%2Fc/1/answer", `{"answer":"yes"}`),
	} {
		if got.StatusCode != http.StatusForbidden {
			t.Errorf("an answer to a prompt of operators by a viewer: %d, want 403", got.StatusCode)
		}
	}
	for _, a := range act.All {
		if a.Name == "order.answer" { // who may, its prompt says
			continue
		}
		form := url.Values{"do": {a.Name}}
		for name, value := range given {
			form[name] = value
		}
		for _, got := range []response{b.get("/act?" + form.Encode()), b.post("/act", form), s.call("viewer-secret", a.Method, a.Target(form), "{}")} {
			if got.StatusCode != http.StatusForbidden {
				t.Errorf("%s by a viewer, %s %s: %d, want 403", a.Name, got.Request.Method, got.Request.URL.Path, got.StatusCode)
			}
		}
	}
	for _, m := range act.AllMany {
		form := url.Values{"do": {m.Name}, "state": {"QUEUED"}}
		for _, got := range []response{b.get("/many?" + form.Encode()), b.post("/many", form), s.call("viewer-secret", http.MethodPost, m.Path, m.Request(form, false).Body)} {
			if got.StatusCode != http.StatusForbidden {
				t.Errorf("%s by a viewer, %s %s: %d, want 403", m.Name, got.Request.Method, got.Request.URL.Path, got.StatusCode)
			}
		}
	}
	for _, page := range []string{"/", "/jobs", "/queues", "/handlers", "/schedules", "/orders", "/chains/%2Fc", "/instances", "/journal", "/failures", "/definitions"} {
		if got := b.get(page); got.StatusCode != http.StatusOK || strings.Contains(got.body, `href="/act?`) || strings.Contains(got.body, `href="/many?`) || strings.Contains(got.body, "<textarea") {
			t.Errorf("%s for a viewer: %d, or it offers an act", page, got.StatusCode)
		}
	}
}

// TestDefaultTokens: no token is known that the operator has not given, and none is empty.
func TestDefaultTokens(t *testing.T) {
	s := start(t)
	for i, guess := range []string{"", " ", "admin", "password", "secret", "millrace", "token", "changeme"} {
		if i == 5 {
			s.mu.Lock()
			s.now = s.now.Add(2 * 60e9) // so many guesses at once are limited
			s.mu.Unlock()
		}
		if got := s.browser().post("/login", url.Values{"token": {guess}}); got.StatusCode != http.StatusUnauthorized || len(got.Cookies()) > 0 {
			t.Errorf("the token %q: %d", guess, got.StatusCode)
		}
	}
}

// TestJSONP: no response is a script that another page could load: neither the API nor a page takes the name of a function, and nothing is told to be
// JavaScript but the dashboard's own files.
func TestJSONP(t *testing.T) {
	s := start(t)
	b := s.signedIn("admin-secret")
	for _, path := range []string{"/?callback=evil", "/live?callback=evil&after=x", "/jobs?callback=evil&jsonp=evil"} {
		got := b.get(path)
		if kind := got.Header.Get("Content-Type"); strings.Contains(kind, "javascript") || strings.Contains(got.body, "evil(") || got.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %s\n%s", path, kind, got.body)
		}
	}
	for _, path := range []string{"/api/v1/queues?callback=evil", "/api/v1/jobs?jsonp=evil"} {
		got := s.call("admin-secret", http.MethodGet, path, "")
		if kind := got.Header.Get("Content-Type"); !strings.Contains(kind, "json") || strings.Contains(kind, "javascript") || strings.HasPrefix(got.body, "evil") {
			t.Errorf("%s: %s\n%s", path, kind, got.body)
		}
	}
}

// TestAnOpenRedirectAfterAnAct: an act leads back to a page of this server only.
func TestAnOpenRedirectAfterAnAct(t *testing.T) {
	s := start(t)
	b := s.signedIn("admin-secret")
	for _, back := range []string{"//evil.example", "https://evil.example/", "/\\evil.example", "javascript:alert(1)"} {
		got := b.post("/act", url.Values{"do": {"schedule.trigger"}, "name": {"nightly"}, "back": {back}})
		if got.StatusCode != http.StatusSeeOther || got.Header.Get("Location") != "/" {
			t.Errorf("back %q: %d to %q", back, got.StatusCode, got.Header.Get("Location"))
		}
		if page := b.get("/act?do=queue.purge&name=main&back=" + url.QueryEscape(back)); strings.Contains(page.body, "evil.example") || strings.Contains(page.body, "javascript:") {
			t.Errorf("back %q is in the form: %s", back, page.body)
		}
	}
}

// TestFraming and the cache of private pages: no page may be shown within another, and none is kept by the browser, nor by what is between; also not
// those that refuse, lead on, or ask.
func TestFraming(t *testing.T) {
	s := start(t)
	b := s.signedIn("admin-secret")
	for _, got := range []response{
		b.get("/"), b.get("/login"), b.get("/act?do=queue.purge&name=main"), b.get("/act?do=none"), b.get("/task/none"), b.get("/?at=x"), s.browser().get("/"),
		s.browser().post("/login", url.Values{"token": {"guess"}}), b.post("/act", url.Values{"do": {"none"}}), b.post("/definitions", url.Values{"definitions": {"x"}}),
	} {
		if !strings.Contains(got.Header.Get("Content-Security-Policy"), "frame-ancestors 'none'") {
			t.Errorf("%s %s can be framed", got.Request.Method, got.Request.URL)
		}
		if got.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s %s may be kept: %q", got.Request.Method, got.Request.URL, got.Header.Get("Cache-Control"))
		}
	}
}

// TestTheCookieOnPlainHTTP: a session that began on an encrypted connection has a cookie that a browser never sends on another; and no cookie can be
// read by a script, or is sent by another site.
func TestTheCookieOnPlainHTTP(t *testing.T) {
	s := start(t)
	secure := httptest.NewTLSServer(s.Config.Handler)
	t.Cleanup(secure.Close)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, secure.URL+"/login", strings.NewReader(url.Values{"token": {"admin-secret"}}.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	client := secure.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	got, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	got.Body.Close()
	if c := got.Cookies()[0]; !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode {
		t.Errorf("the cookie of an encrypted connection is %+v", c)
	}
	if c := s.browser().post("/login", url.Values{"token": {"admin-secret"}}).Cookies()[0]; c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode {
		t.Errorf("the cookie on plain HTTP is %+v", c)
	}
}
