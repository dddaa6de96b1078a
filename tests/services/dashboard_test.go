package services_test

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/tests/gateway"
	"github.com/millrace/millrace/tests/process"
)

// visitor is a browser at the dashboard behind a gateway. It follows no redirect.
type visitor struct {
	t       *testing.T
	gateway string
	cookie  string // of its session
}

// gateway starts the functions as Lambda runs them, two instances of each, with a token more: of a viewer.
func (d *deployment) gateway(t *testing.T) *visitor {
	t.Helper()
	tokens := fmt.Sprintf(`MILLRACE_TOKENS=[{"name":"admin","role":"admin","sha256":"%x"},{"name":"eve","role":"viewer","sha256":"%x"}]`,
		sha256.Sum256([]byte(secret)), sha256.Sum256([]byte("viewer")))
	g := gateway.Start(t, gateway.Options{Template: "../../template.yaml", Programs: programs, Instances: 2, Env: func(function string) []string {
		return append(slices.Clone(d.env), "AWS_ENDPOINT_URL="+d.requests[function].URL, "MILLRACE_ADMIN_TOKEN=", tokens)
	}})
	return &visitor{t: t, gateway: g.URL}
}

// do makes a request as a browser does. It returns the status, where that leads, and the page.
func (v *visitor) do(method, path string, form url.Values) (status int, to, page string) {
	v.t.Helper()
	r, err := http.NewRequestWithContext(v.t.Context(), method, v.gateway+path, strings.NewReader(form.Encode()))
	if err != nil {
		v.t.Fatal(err)
	}
	r.Header.Set("Accept", "text/html")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if v.cookie != "" {
		r.Header.Set("Cookie", "theme=dark; millrace_session="+v.cookie)
	}
	client := http.Client{Transport: process.Client.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(r)
	if err != nil {
		v.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	for _, c := range response.Cookies() {
		if v.cookie = c.Value; c.MaxAge > 0 && (!c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode) {
			v.t.Errorf("the cookie is %+v", c)
		}
	}
	return response.StatusCode, response.Header.Get("Location"), string(body)
}

// sees fetches a page, which must hold all of these.
func (v *visitor) sees(path string, all ...string) string {
	v.t.Helper()
	status, to, page := v.do(http.MethodGet, path, nil)
	if status != http.StatusOK {
		v.t.Errorf("%s: %d %s\n%s", path, status, to, page)
	}
	for _, want := range all {
		if !strings.Contains(page, want) {
			v.t.Errorf("%s has no %q:\n%s", path, want, page)
		}
	}
	return page
}

// acts does an act, and returns the page that comes next. Parameters are names and values in turn.
func (v *visitor) acts(name string, parameters ...string) (to string) {
	v.t.Helper()
	path, form := "/act", url.Values{"do": {name}, "back": {"/queues"}}
	if strings.HasPrefix(name, "jobs.") {
		path = "/many"
	}
	for i := 0; i+1 < len(parameters); i += 2 {
		form.Set(parameters[i], parameters[i+1])
	}
	v.sees(path+"?"+form.Encode(), "<form") // what is asked before
	status, to, page := v.do(http.MethodPost, path, form)
	if status != http.StatusSeeOther {
		v.t.Errorf("%s: %d\n%s", name, status, page)
	}
	return to
}

// signIn signs in with a token.
func (v *visitor) signIn(token string) {
	v.t.Helper()
	if status, to, _ := v.do(http.MethodPost, "/login", url.Values{"token": {token}, "next": {"/chains/%2Ffolder%2Fwalk"}}); status != http.StatusSeeOther || to != "/chains/%2Ffolder%2Fwalk" {
		v.t.Fatalf("signing in with %s: %d to %q", token, status, to)
	}
}

// TestTheDashboardOnLambda: its pages and its acts, with requests going to two instances in turn: whatever one has done, the other knows.
func TestTheDashboardOnLambda(t *testing.T) {
	t.Parallel()
	d := start(t)
	d.apply(t, `
queues: [{name: mail, topics: ["mail/*"], type: round-robin}]
handlers: [{canvas: c, space: S, name: n, target: {instances: true}}]
sources: {shop: {target: {instances: true}, collections: [{name: orders}]}}
jobs: [{path: /topics/a, target: {instances: true}}, {path: /step, target: {instances: true}}]
schedules: [{name: nightly, cron: "0 0 3 1 1 ? 2099", job: /topics/a}]
job_chains: [{path: /folder/walk, nodes: [{id: A, job: /step}, {id: end}]}]
`)
	v := d.gateway(t)
	if status, to, _ := v.do(http.MethodGet, "/jobs", nil); status != http.StatusSeeOther || to != "/login?next=%2Fjobs" {
		t.Errorf("without a session: %d to %q", status, to)
	}
	v.sees("/login", `name="token"`)
	v.sees("/assets/htmx.js", "htmx")
	v.signIn(secret)

	links := regexp.MustCompile(`href="([^"]+)" data-key`).FindAllStringSubmatch(v.sees("/"), -1)
	if len(links) < 10 {
		t.Errorf("the first page leads to %v", links)
	}
	for _, link := range links {
		v.sees(link[1], "<h1>")
	}
	v.sees("/chains/%2Ffolder%2Fwalk", "/folder/walk", `do=order.add`)

	task := v.acts("job.add", "topic", "a", "properties", `{"n":1}`)
	v.sees(task, "QUEUED", "TaskAdded", "by")
	v.acts("job.stop", "id", strings.TrimPrefix(task, "/task/"))
	v.sees(task, "STOPPED")
	v.acts("job.add", "topic", "mail/x", "properties", `{}`)
	v.acts("queue.suspend", "name", "mail")
	v.sees("/queues", "suspended")
	v.acts("queue.resume", "name", "mail")
	v.acts("queue.purge", "name", "mail")
	v.acts("task.enqueue", "source", "shop", "collection", "orders")
	v.acts("handler.emit", "canvas", "c", "space", "S", "name", "n", "value", "1")
	v.acts("handler.pause", "canvas", "c", "space", "S", "name", "n")
	v.sees("/handlers", "Lift the pause")
	v.acts("handler.unpause", "canvas", "c", "space", "S", "name", "n")
	v.acts("schedule.trigger", "name", "nightly")
	v.acts("schedule.suspend", "name", "nightly")
	v.acts("order.add", "chain", "/folder/walk", "id", "7")
	v.sees("/orders/%2Ffolder%2Fwalk/7", "OrderAdded")
	v.acts("order.suspend", "chain", "/folder/walk", "id", "7")
	v.acts("order.remove", "chain", "/folder/walk", "id", "7")
	v.acts("event.emit", "events", `[{"TYPE":"Noted","key":"k"},{"TYPE":"Noted","key":"l"}]`)
	v.sees("/journal", "Noted")
	v.sees("/audit", "admin")
	to := v.acts("jobs.remove", "state", "STOPPED")
	v.sees(to, "jobs")
	status, _, page := v.do(http.MethodPost, "/definitions", url.Values{"definitions": {"queues: [{name: other}]"}})
	if status != http.StatusOK || !strings.Contains(page, "other") {
		t.Errorf("what a change of definitions would do: %d\n%s", status, page)
	}
	v.acts("definitions.apply", "definitions", "queues: [{name: other}]")
	v.sees("/definitions", "other")
	if got := v.sees("/live?after=0", "data: changed"); !strings.Contains(got, "retry: ") {
		t.Errorf("an open page is not told to ask again: %q", got)
	}

	viewer := &visitor{t: t, gateway: v.gateway}
	viewer.signIn("viewer")
	if status, _, _ := viewer.do(http.MethodPost, "/act", url.Values{"do": {"queue.purge"}, "name": {"other"}}); status != http.StatusForbidden {
		t.Errorf("an act of a viewer: %d, want 403", status)
	}
	kept := v.cookie
	if status, to, _ := v.do(http.MethodPost, "/logout", url.Values{}); status != http.StatusSeeOther || to != "/login" || v.cookie != "" {
		t.Errorf("signing out: %d to %q, cookie %q", status, to, v.cookie)
	}
	for range 2 { // at both instances
		v.cookie = kept
		if status, to, _ := v.do(http.MethodGet, "/", nil); status != http.StatusSeeOther || !strings.HasPrefix(to, "/login") {
			t.Errorf("after signing out: %d to %q", status, to)
		}
	}
	d.requests["dashboard"].Check(t)
}
