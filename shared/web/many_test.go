package web_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Acts on many are counted first, begun by those who may, and lead to their progress.
func TestActsOnMany(t *testing.T) {
	s := start(t)
	for n := range 3 {
		s.call("admin-secret", http.MethodPost, "/api/v1/jobs", fmt.Sprintf(`{"topic":"a","properties":{"n":%d}}`, n))
	}
	b := s.signedIn("operator-secret")
	if got := b.get("/jobs?type=QUEUED"); !strings.Contains(got.body, "/many?back=%2Fjobs%3Ftype%3DQUEUED&amp;do=jobs.stop&amp;state=QUEUED") {
		t.Errorf("the page of jobs has no button:\n%s", got.body)
	}
	if got := s.signedIn("viewer-secret").get("/jobs?type=QUEUED"); strings.Contains(got.body, "/many?") {
		t.Error("a viewer is offered an act on many")
	}
	asked := b.get("/many?do=jobs.stop&state=QUEUED&topic=a")
	if asked.StatusCode != http.StatusOK || !strings.Contains(asked.body, "<strong>3</strong> are selected, state <code>QUEUED</code>, topic <code>a</code>.") {
		t.Fatalf("the confirmation: %d\n%s", asked.StatusCode, asked.body)
	}
	form := url.Values{"do": {"jobs.stop"}, "state": {"QUEUED"}, "topic": {"a"}}
	if got := s.signedIn("viewer-secret").post("/many", form); got.StatusCode != http.StatusForbidden {
		t.Errorf("by a viewer: %d, want 403", got.StatusCode)
	}
	began := b.post("/many", form)
	at := began.Header.Get("Location")
	if began.StatusCode != http.StatusSeeOther || !regexp.MustCompile(`^/acts/\w+$`).MatchString(at) {
		t.Fatalf("the act: %d to %q\n%s", began.StatusCode, at, began.body)
	}
	if got := b.get(at); got.StatusCode != http.StatusOK || !strings.Contains(got.body, `<progress max="3"`) {
		t.Errorf("its progress: %d\n%s", got.StatusCode, got.body)
	}
	for path, want := range map[string]int{"/many?do=none": http.StatusNotFound, "/many?do=jobs.retry&state=QUEUED": http.StatusUnprocessableEntity, "/acts/none": http.StatusNotFound} {
		if got := b.get(path); got.StatusCode != want {
			t.Errorf("GET %s: %d, want %d", path, got.StatusCode, want)
		}
	}
}

// Long lists are shown a page at a time.
func TestListsGoOn(t *testing.T) {
	s := start(t)
	for n := range 120 {
		s.call("admin-secret", http.MethodPost, "/api/v1/jobs", fmt.Sprintf(`{"topic":"a","properties":{"n":%d}}`, n))
	}
	b, seen, at := s.signedIn("viewer-secret"), map[string]bool{}, "/jobs?type=QUEUED"
	for pages := 0; at != ""; pages++ {
		got := b.get(at)
		if got.StatusCode != http.StatusOK || pages > 5 {
			t.Fatalf("GET %s: %d, page %d", at, got.StatusCode, pages)
		}
		for _, found := range regexp.MustCompile(`href="/task/([^"]+)"`).FindAllStringSubmatch(got.body, -1) {
			seen[found[1]] = true
		}
		at = ""
		if next := regexp.MustCompile(`href="([^"]+)" rel="next"`).FindStringSubmatch(got.body); next != nil {
			at = strings.ReplaceAll(next[1], "&amp;", "&")
		}
	}
	if len(seen) != 120 {
		t.Errorf("%d jobs are shown, want 120", len(seen))
	}
}

// Failures are grouped by job and by what their messages have in common.
func TestFailuresByKind(t *testing.T) {
	s := start(t)
	instance := member(t, s.call("admin-secret", http.MethodPost, "/api/v1/instances", `{"name":"w","jobs":["/topics/*"],"capacity":9}`).body, "id")
	for n, message := range []string{"no order 17 for 'ada'", "no order 18 for 'bob'", "<script>alert(1)</script>"} {
		s.call("admin-secret", http.MethodPost, "/api/v1/jobs", fmt.Sprintf(`{"topic":"a","properties":{"n":%d}}`, n))
		claimed := member(t, s.call("admin-secret", http.MethodPost, "/api/v1/instances/"+instance+"/claims", `{"max":1}`).body, "token")
		s.call("admin-secret", http.MethodPost, "/api/v1/leases/"+claimed+"/complete", fmt.Sprintf(`{"result":"cancel","message":%q}`, message))
	}
	got := s.signedIn("viewer-secret").get("/failures")
	if !regexp.MustCompile(`<td class="n">2</td><td>/topics/a</td><td class="wide"><code>no order 18 for &#39;bob&#39;</code>`).MatchString(got.body) {
		t.Errorf("the first two are not one kind:\n%s", got.body)
	}
	const ofKind = "do=jobs.retry&message=no+order+N+for+%E2%80%A6&state=ERROR&topic=a"
	o := s.signedIn("operator-secret")
	if got := o.get("/failures"); !strings.Contains(html.UnescapeString(got.body), ofKind) {
		t.Errorf("the first two cannot be run again by themselves:\n%s", got.body)
	}
	for query, want := range map[string]string{
		"": "<strong>2</strong> are selected", "&limit=1": "<strong>1</strong> is selected", "&per_second=1": "At most 1 a second are done, which takes 1s or more;",
	} {
		asked := o.get("/many?" + ofKind + query)
		if asked.StatusCode != http.StatusOK || !strings.Contains(asked.body, want) {
			t.Errorf("the confirmation of %q has no %s: %d\n%s", query, want, asked.StatusCode, asked.body)
		}
	}
	if asked := o.get("/many?do=jobs.retry&state=ERROR&per_second=many"); asked.StatusCode != http.StatusBadRequest || !strings.Contains(asked.body, "per_second") {
		t.Errorf("a rate that is none: %d\n%s", asked.StatusCode, asked.body)
	}
	form := url.Values{"do": {"jobs.retry"}, "state": {"ERROR"}, "message": {"no order 1 for 'eve'"}, "limit": {"1"}, "per_second": {"5"}}
	began := o.post("/many", form)
	if got := o.get(began.Header.Get("Location")); !strings.Contains(got.body, `<progress max="1"`) || !strings.Contains(got.body, "<dt>at most a second</dt><dd>5</dd>") {
		t.Errorf("its progress: %d\n%s", got.StatusCode, got.body)
	}
	if strings.Contains(got.body, "<script>alert") || !strings.Contains(got.body, "&lt;script&gt;alert") {
		t.Errorf("a message is not shown as text:\n%s", got.body)
	}
}

// The first page shows the attempts that ended, by time.
func TestAttemptsByTime(t *testing.T) {
	s := start(t)
	if got := s.signedIn("viewer-secret").get("/"); strings.Contains(got.body, "<svg") {
		t.Errorf("a chart of nothing:\n%s", got.body)
	}
	instance := member(t, s.call("admin-secret", http.MethodPost, "/api/v1/instances", `{"name":"w","jobs":["/topics/*"],"capacity":9}`).body, "id")
	var claimed [3]string
	for n, result := range []string{"ok", "cancel", "cancel"} {
		s.call("admin-secret", http.MethodPost, "/api/v1/jobs", fmt.Sprintf(`{"topic":"a","properties":{"n":%d}}`, n))
		claimed[n] = member(t, s.call("admin-secret", http.MethodPost, "/api/v1/instances/"+instance+"/claims", `{"max":1}`).body, "token")
		s.call("admin-secret", http.MethodPost, "/api/v1/leases/"+claimed[n]+"/complete", fmt.Sprintf(`{"result":%q}`, result))
	}
	s.now = s.now.Add(time.Hour)
	got := s.signedIn("viewer-secret").get("/")
	for _, want := range []string{
		"The newest 3 ends of attempts, 2 of them failed, over 5 h; a bar is 5 min",
		`height="60" class="ended"`, `y="20" width="8" height="40" class="failed"`,
	} {
		if !strings.Contains(got.body, want) {
			t.Errorf("the chart has no %s:\n%s", want, got.body)
		}
	}
	at := func(n int) int { return strings.Index(got.body, strings.Split(claimed[n], ".")[0]) }
	if at(0) >= 0 || at(1) < 0 || at(2) < 0 || at(2) > at(1) {
		t.Errorf("the failures are not listed newest first:\n%s", got.body)
	}
}

// A page shows so many orders at most, and says that there are more.
func TestManyOrders(t *testing.T) {
	s := start(t)
	for n := range 502 {
		if got := s.call("admin-secret", http.MethodPost, "/api/v1/orders/%2Fc", fmt.Sprintf(`{"id":"%d"}`, n)); got.StatusCode != http.StatusCreated {
			t.Fatalf("%d %s", got.StatusCode, got.body)
		}
	}
	got := s.signedIn("viewer-secret").get("/orders")
	if n := strings.Count(got.body, `<a href="/orders/`); n != 500 || !strings.Contains(got.body, "These are the first 500; there are more.") {
		t.Errorf("%d orders are shown", n)
	}
	if got := s.signedIn("viewer-secret").get("/chains/%2Fc"); !strings.Contains(got.body, `<a href="/orders">502</a>`) {
		t.Errorf("the chain's page counts other orders: %s", got.body)
	}
}

// member returns a member of a JSON text that is a string.
func member(t *testing.T, text, name string) string {
	t.Helper()
	found := regexp.MustCompile(`"` + name + `":"([^"]+)"`).FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("no %s in %s", name, text)
	}
	return found[1]
}
