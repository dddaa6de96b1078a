package web_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/config"
	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/host"
	"github.com/millrace/millrace/shared/notifier/local"
	"github.com/millrace/millrace/shared/service"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/web"
)

// declared is what the server under test has.
const declared = `
handlers: [{canvas: demo, space: WORKER, name: "<b>greet", target: {instances: true}}]
jobs: [{path: /topics/a, target: {instances: true}}]
schedules: [{name: nightly, cron: "0 0 3 1 1 ? 2080", job: /topics/a}]
job_chains:
  - {path: /c, nodes: [{id: ask, prompt: {role: operator, answers: {yes: end, no: end}}}, {id: end}]}
  - {path: /folder/d, nodes: [{id: ask, prompt: {role: operator, answers: {yes: end}}}, {id: end}]}
`

// server is a dashboard over a whole API, on a store in memory.
type server struct {
	t *testing.T
	*httptest.Server
	store store.Store
	mu    sync.Mutex
	now   time.Time
	pace  time.Duration // by which the dashboard's clock goes on whenever it is read
}

var tokens = []access.Token{
	access.NewToken("ada", access.Admin, "admin-secret"), access.NewToken("eve", access.Viewer, "viewer-secret"),
	access.NewToken("otto", access.Operator, "operator-secret"), access.NewToken("pia", access.Producer, "producer-secret"),
}

func start(t *testing.T) *server {
	t.Helper()
	return startOn(t, memory.New(memory.Options{}))
}

// startOn is start with a store.
func startOn(t *testing.T, on store.Store) *server {
	t.Helper()
	return startWith(t, on, api.Options{})
}

// startWith is startOn with an API that has more than tokens.
func startWith(t *testing.T, on store.Store, options api.Options) *server {
	t.Helper()
	s := &server{t: t, store: on, now: time.Now()}
	set, err := definition.Read("test.yaml", []byte(declared))
	if err != nil {
		t.Fatal(err)
	}
	notifier, err := config.OpenNotifier(t.Context(), "", config.Notifiers{"local": local.Open})
	if err != nil {
		t.Fatal(err)
	}
	settings := config.Settings{Tokens: tokens, Definitions: set}
	n := service.NewTasks(service.New(host.Place{Env: func(string) string { return "" }}, settings, s.store, slog.New(slog.DiscardHandler)), notifier)
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := n.Declare(t.Context()); err != nil {
		t.Fatal(err)
	}
	options.Tokens = tokens
	operations := api.New(options, n.Resources()...)
	s.Server = httptest.NewServer(web.New(web.Options{
		API: operations, Tokens: func() []access.Token { return tokens }, Store: n.Store, Journal: n.Journal, Now: s.clock, Mask: []string{"password"},
		Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) clock() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(s.pace)
	return s.now
}

// browser is a person's: it keeps cookies, follows no redirect, and names HTML among what it accepts.
type browser struct {
	t *testing.T
	s *server
	c *http.Client
}

func (s *server) browser() *browser {
	jar, err := cookiejar.New(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	transport := s.Client().Transport // not the default one, whose idle connections every server closes when its test ends
	return &browser{s.t, s, &http.Client{Transport: transport, Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// signedIn returns the browser of somebody with that token.
func (s *server) signedIn(secret string) *browser {
	s.t.Helper()
	b := s.browser()
	if got := b.post("/login", url.Values{"token": {secret}}); got.StatusCode != http.StatusSeeOther {
		s.t.Fatalf("signing in: %d", got.StatusCode)
	}
	return b
}

// response is one with its body read.
type response struct {
	*http.Response
	body string
}

func (b *browser) do(r *http.Request) response {
	b.t.Helper()
	r.Header.Set("Accept", "text/html,application/xhtml+xml")
	return b.send(r)
}

// send is do with the headers as they are.
func (b *browser) send(r *http.Request) response {
	b.t.Helper()
	got, err := b.c.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return response{got, string(body)}
}

func (b *browser) get(path string) response {
	b.t.Helper()
	return b.do(b.request(http.MethodGet, path, ""))
}

func (b *browser) post(path string, form url.Values) response {
	b.t.Helper()
	r := b.request(http.MethodPost, path, form.Encode())
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return b.do(r)
}

func (b *browser) request(method, path, body string) *http.Request {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.s.URL+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

// call makes a request to the API with a token, as a program does.
func (s *server) call(secret, method, path, body string) response {
	s.t.Helper()
	b := s.browser()
	r := b.request(method, path, body)
	r.Header.Set("Authorization", "Bearer "+secret)
	r.Header.Set("Content-Type", "application/json")
	return b.do(r)
}

func TestNobodyReadsWithoutASession(t *testing.T) {
	s := start(t)
	for _, path := range []string{"/", "/jobs", "/orders?path=%2Fa", "/journal", "/act?do=queue.purge&name=main"} {
		if got := s.browser().get(path); got.StatusCode != http.StatusSeeOther || got.Header.Get("Location") != "/login?next="+url.QueryEscape(path) {
			t.Errorf("GET %s by a browser: %d to %q", path, got.StatusCode, got.Header.Get("Location"))
		}
		program, err := s.Client().Get(s.URL + path) // a program that names no types
		if err != nil {
			t.Fatal(err)
		}
		program.Body.Close()
		if program.StatusCode != http.StatusUnauthorized {
			t.Errorf("GET %s by a program: %d, want 401", path, program.StatusCode)
		}
	}
	if got := s.browser().do(s.browser().request(http.MethodHead, "/jobs?type=ALL", "")); got.Header.Get("Location") != "/login?next=%2Fjobs%3Ftype%3DALL" {
		t.Errorf("HEAD by a browser: %d to %q", got.StatusCode, got.Header.Get("Location"))
	}
	if got := s.browser().get("/?token=admin-secret"); got.StatusCode != http.StatusSeeOther {
		t.Errorf("a token in the address of a page: %d, want it to count for nothing", got.StatusCode)
	}
}

func TestTheCookieIsOfNoUseElsewhere(t *testing.T) {
	s := start(t)
	b := s.browser()
	got := b.post("/login", url.Values{"token": {"admin-secret"}, "next": {"/queues"}})
	if got.StatusCode != http.StatusSeeOther || got.Header.Get("Location") != "/queues" {
		t.Fatalf("signing in: %d to %q", got.StatusCode, got.Header.Get("Location"))
	}
	c := got.Cookies()[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.MaxAge <= 0 || c.MaxAge > 24*3600 || c.Secure {
		t.Errorf("the cookie is %+v", c)
	}
	if strings.Contains(c.Value, "secret") {
		t.Error("the cookie holds the token")
	}
	if got := b.get("/api/v1/queues"); got.StatusCode != http.StatusUnauthorized {
		t.Errorf("the API with a cookie: %d, want 401", got.StatusCode)
	}
	for proto, want := range map[string]bool{"https": true, "HTTPS": true, "https,http": true, "https, http": true, "http": false, "http,https": false} {
		r := s.browser().request(http.MethodPost, "/login", url.Values{"token": {"admin-secret"}}.Encode())
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("X-Forwarded-Proto", proto)
		if got := s.browser().do(r); got.Cookies()[0].Secure != want {
			t.Errorf("behind a proxy that was asked by %s, Secure is %t", proto, !want)
		}
	}
}

// Signing in leads to a page of this server, and to none that would ask again.
func TestAnOpenRedirectAtSignIn(t *testing.T) {
	s := start(t)
	for _, next := range []string{"//evil.example", "https://evil.example/", "/\\evil.example", "javascript:alert(1)", "\t//evil.example", "", "/login", "/login?next=%2Fjobs", "/logout", "/x/../login"} {
		got := s.browser().post("/login", url.Values{"token": {"viewer-secret"}, "next": {next}})
		if got.Header.Get("Location") != "/" {
			t.Errorf("next %q leads to %q", next, got.Header.Get("Location"))
		}
	}
}

func TestASessionEnds(t *testing.T) {
	s := start(t)
	t.Run("by signing out, on the server", func(t *testing.T) {
		b := s.signedIn("admin-secret")
		kept := b.c.Jar.Cookies(b.request(http.MethodGet, "/", "").URL)
		if got := b.post("/logout", nil); got.StatusCode != http.StatusSeeOther {
			t.Errorf("signing out: %d", got.StatusCode)
		}
		r := s.browser().request(http.MethodGet, "/", "")
		r.AddCookie(kept[0])
		if got := s.browser().do(r); got.StatusCode != http.StatusSeeOther {
			t.Errorf("the old cookie: %d, want it led to sign in", got.StatusCode)
		}
	})
	t.Run("by time", func(t *testing.T) {
		b := s.signedIn("admin-secret")
		s.now = s.now.Add(24 * time.Hour)
		if got := b.get("/"); got.StatusCode != http.StatusSeeOther {
			t.Errorf("a day later: %d, want it led to sign in", got.StatusCode)
		}
	})
}

func TestFailedSignInsAreLimited(t *testing.T) {
	s := start(t)
	for i := range 10 {
		if got := s.browser().post("/login", url.Values{"token": {"guess"}}); got.StatusCode != http.StatusUnauthorized {
			t.Fatalf("guess %d: %d, want 401", i, got.StatusCode)
		}
	}
	if got := s.browser().post("/login", url.Values{"token": {"admin-secret"}}); got.StatusCode != http.StatusTooManyRequests {
		t.Errorf("after ten failures: %d, want 429", got.StatusCode)
	}
	s.now = s.now.Add(time.Minute)
	s.signedIn("admin-secret")
}

// Every page has the headers that keep it from being framed, kept, sniffed or made to run scripts of others.
func TestHeaders(t *testing.T) {
	s := start(t)
	b := s.signedIn("admin-secret")
	for _, path := range []string{"/", "/login", "/journal", "/task/none"} {
		got := b.get(path)
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
			"X-Content-Type-Options":  "nosniff", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer",
		} {
			if got.Header.Get(name) != want {
				t.Errorf("GET %s: %s: %s", path, name, got.Header.Get(name))
			}
		}
		if regexp.MustCompile(`(?i)<script>|<style|\son\w+=|style=`).MatchString(got.body) {
			t.Errorf("GET %s has an inline script or style", path)
		}
	}
}

func TestARoleThatMayNotRead(t *testing.T) {
	s := start(t)
	if got := s.signedIn("producer-secret").get("/"); got.StatusCode != http.StatusForbidden || !strings.Contains(got.body, "<h1>Forbidden</h1>") {
		t.Errorf("the first page for a producer: %d\n%s", got.StatusCode, got.body)
	}
}

func TestPagesShowWhatIsThere(t *testing.T) {
	s := start(t)
	s.call("admin-secret", http.MethodPost, "/api/v1/orders/%2Fc", `{"id":"<script>7","variables":{"v":"</pre><script>alert(1)</script>"}}`)
	s.call("admin-secret", http.MethodPost, "/api/v1/jobs", `{"topic":"a","properties":{"p":"<img src=x onerror=alert(1)>"}}`)
	b := s.signedIn("viewer-secret")
	for path, want := range map[string]string{
		"/": "None registered; jobs with", "/jobs": "/task/", "/queues": "<td>main</td>", "/handlers": ">WORKER/&lt;b&gt;greet<", "/schedules": "nightly",
		"/orders": "/c,&lt;script&gt;7", "/orders/%2Fc/%3Cscript%3E7": "OrderPrompted", "/chains/%2Fc": "<td>prompt</td>",
		"/handlers/demo/WORKER/%3Cb%3Egreet": "No event", "/sources": "No sources", "/streams": "No stream", "/instances": "No instance",
		"/journal": "OrderAdded", "/definitions": "job_chains",
	} {
		got := b.get(path)
		if got.StatusCode != http.StatusOK || !strings.Contains(got.body, want) {
			t.Errorf("GET %s: %d without %q\n%s", path, got.StatusCode, want, got.body)
		}
		if strings.Contains(got.body, "<script>") || strings.Contains(got.body, "<img") || strings.Contains(strings.ReplaceAll(got.body, "do=order.answer", ""), "do=") {
			t.Errorf("GET %s has a stored script, or a button that a viewer may not use:\n%s", path, got.body)
		}
	}
	job := regexp.MustCompile(`/task/[^"]+`).FindString(b.get("/jobs").body)
	if got := b.get(job); got.StatusCode != http.StatusOK || !strings.Contains(got.body, "&lt;img src") {
		t.Errorf("GET %s: %d\n%s", job, got.StatusCode, got.body)
	}
	for _, none := range []string{"/task/none", "/orders/%2Fc/none", "/streams/none", "/chains/none"} {
		if got := b.get(none); got.StatusCode != http.StatusNotFound {
			t.Errorf("GET %s: %d, want 404", none, got.StatusCode)
		}
	}
}

func TestActs(t *testing.T) {
	s := start(t)
	s.call("admin-secret", http.MethodPost, "/api/v1/orders/%2Fc", `{"id":"7"}`)
	b := s.signedIn("operator-secret")
	asked := b.get("/act?do=order.answer&chain=%2Fc&id=7&back=%2Forders")
	if asked.StatusCode != http.StatusOK || !strings.Contains(asked.body, "The order 7 of /c goes on") {
		t.Fatalf("the confirmation: %d\n%s", asked.StatusCode, asked.body)
	}
	form := url.Values{"do": {"order.answer"}, "chain": {"/c"}, "id": {"7"}, "answer": {"yes"}, "comment": {"it is \"paid\""}, "back": {"/orders"}}
	if got := s.signedIn("viewer-secret").post("/act", form); got.StatusCode != http.StatusForbidden {
		t.Errorf("by a viewer: %d, want 403", got.StatusCode)
	}
	if got := b.post("/act", form); got.StatusCode != http.StatusSeeOther || got.Header.Get("Location") != "/orders" {
		t.Errorf("the act: %d to %q\n%s", got.StatusCode, got.Header.Get("Location"), got.body)
	}
	if got := b.get("/journal?return=OrderAnswered"); !strings.Contains(got.body, "paid") || !strings.Contains(got.body, "otto") {
		t.Errorf("the journal does not show the answer and who gave it:\n%s", got.body)
	}
	if got := b.post("/act", form); got.StatusCode != http.StatusNotFound {
		t.Errorf("again: %d, want the API's 404", got.StatusCode)
	}
	for path, want := range map[string]int{"/act?do=none": http.StatusNotFound, "/act?do=handler.pause&canvas=c&space=s&name=n": http.StatusOK} {
		if got := b.get(path); got.StatusCode != want {
			t.Errorf("GET %s: %d, want %d", path, got.StatusCode, want)
		}
	}
}

// A form that another site makes a browser send does nothing, whichever of the two headers tells where it is from.
func TestFormsOfOtherSites(t *testing.T) {
	s := start(t)
	b := s.signedIn("admin-secret")
	for _, c := range []struct{ header, value string }{
		{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "http://evil.example"}, {"Origin", "null"},
	} {
		for _, path := range []string{"/act", "/login", "/logout"} {
			r := b.request(http.MethodPost, path, url.Values{"do": {"queue.suspend"}, "name": {"main"}, "token": {"admin-secret"}}.Encode())
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Header.Set(c.header, c.value)
			if got := b.do(r); got.StatusCode != http.StatusForbidden || !strings.Contains(got.body, "<h1>Forbidden</h1>") || len(got.Cookies()) > 0 {
				t.Errorf("POST %s with %s: %s: %d, want 403 as a page\n%s", path, c.header, c.value, got.StatusCode, got.body)
			}
		}
	}
	r := b.request(http.MethodPost, "/login", url.Values{"token": {"admin-secret"}}.Encode())
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", s.URL)
	if got := b.do(r); got.StatusCode != http.StatusSeeOther {
		t.Errorf("the dashboard's own form: %d, want 303", got.StatusCode)
	}
	if got := b.get("/queues"); strings.Contains(got.body, "suspended") {
		t.Error("a form from elsewhere has suspended a queue")
	}
}

// A page tells where its forms are from, or browsers would say null where a connection is not encrypted.
func TestPagesTellWhereFormsAreFrom(t *testing.T) {
	s := start(t)
	for _, page := range []response{s.browser().get("/login"), s.signedIn("admin-secret").get("/")} {
		if !strings.Contains(page.body, `<meta name="referrer" content="same-origin">`) {
			t.Errorf("%s: no referrer policy that lets the browser send Origin", page.Request.URL)
		}
	}
}

// The count of a handler's events in a state leads to these events.
func TestCountsOfHandlersLeadToTheirEvents(t *testing.T) {
	s := start(t)
	if got := s.call("admin-secret", http.MethodPost, "/api/v1/canvases/demo/handlers/WORKER/%3Cb%3Egreet/events", `{"value":1}`); got.StatusCode != http.StatusAccepted {
		t.Fatal(got.StatusCode, got.body)
	}
	b := s.signedIn("viewer-secret")
	page := b.get("/handlers").body
	for status, want := range map[string]int{"scheduled": 1, "error": 0} {
		link := regexp.MustCompile(`href="([^"]+\?status=` + status + `)"`).FindStringSubmatch(page)
		if link == nil {
			t.Fatalf("nothing leads to events that are %s", status)
		}
		if got := b.get(link[1]); got.StatusCode != http.StatusOK || strings.Count(got.body, `"/task/`) != want {
			t.Errorf("%s: %d, want %d events\n%s", status, got.StatusCode, want, got.body)
		}
	}
}
