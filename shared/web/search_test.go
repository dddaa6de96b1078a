package web_test

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// TestJobsAreFoundByTheirProperties: the page of jobs shows those of which a field or a property is as asked for.
func TestJobsAreFoundByTheirProperties(t *testing.T) {
	s := start(t)
	for _, body := range []string{`{"topic":"a","properties":{"customer":"ada","n":5}}`, `{"topic":"b","properties":{"customer":"bob","n":7}}`, `{"topic":"c","priority":9}`} {
		s.call("admin-secret", http.MethodPost, "/api/v1/jobs", body)
	}
	var instance, claim struct {
		ID     string
		Claims []struct{ Token string }
	}
	_ = json.Unmarshal([]byte(s.call("admin-secret", http.MethodPost, "/api/v1/instances", `{"name":"i","jobs":["/topics/c"],"capacity":1}`).body), &instance)
	_ = json.Unmarshal([]byte(s.call("admin-secret", http.MethodPost, "/api/v1/instances/"+instance.ID+"/claims", `{"max":1}`).body), &claim)
	for _, c := range claim.Claims {
		s.call("admin-secret", http.MethodPost, "/api/v1/leases/"+c.Token+"/complete", `{"result":"failed","message":"it ran out of paper","retry_delay":"1h"}`)
	}
	b := s.signedIn("viewer-secret")
	for where, want := range map[string]string{"customer=ada": "a", "n=7": "b", ">n=5": "b", "=topic=a": "a", ">=priority=9": "c", "customer=eve": "", "~customer=OB": "b", "~message=OUT of": "c",
		"topic=b && n=7": "b", "topic=a && n=7": "", ">=n=5 && <=n=6&&~customer=a": "a"} {
		got := b.get("/jobs?where=" + url.QueryEscape(where))
		for _, topic := range []string{"a", "b", "c"} {
			if shown := strings.Contains(got.body, "</a></td><td>"+topic+"</td>"); got.StatusCode != http.StatusOK || shown != (topic == want) {
				t.Errorf("where %s: %d, the job of %s is shown: %v", where, got.StatusCode, topic, shown)
			}
		}
	}
	if got := b.get("/jobs?where=" + url.QueryEscape("customer=bob") + "&topic=a"); strings.Contains(got.body, `href="/task/`) {
		t.Errorf("of another topic: %s", got.body)
	}
	if got := b.get("/jobs?where=nothing"); got.StatusCode != http.StatusBadRequest || !strings.Contains(got.body, "customer=ada") {
		t.Errorf("a filter that is none: %d", got.StatusCode)
	}
}

// TestASearchGoesOn: where nothing was found in what one request looks through, the page says so and leads on from there.
func TestASearchGoesOn(t *testing.T) {
	if testing.Short() {
		t.Skip("adds a hundred thousand jobs")
	}
	s := start(t)
	for n := range 101 {
		jobs := strings.Repeat(`{"topic":"a"},`, 999) + fmt.Sprintf(`{"topic":"b","properties":{"n":%d}}`, n)
		if got := s.call("admin-secret", http.MethodPost, "/api/v1/jobs:batch", "["+jobs+"]"); got.StatusCode != http.StatusCreated {
			t.Fatalf("%d %s", got.StatusCode, got.body)
		}
	}
	b := s.signedIn("viewer-secret")
	to, looks := "/jobs?all=1&where=n%3D100", 1
	for ; ; looks++ {
		got := b.get(to)
		if strings.Contains(got.body, "</a></td><td>b</td>") {
			break
		}
		next := regexp.MustCompile(`<a class="button" href="([^"]+)" rel="next">Look further</a>`).FindStringSubmatch(got.body)
		if got.StatusCode != http.StatusOK || next == nil || !strings.Contains(got.body, "None of the jobs that were looked through so far is one where n=100.") {
			t.Fatalf("look %d leads nowhere: %d\n%s", looks, got.StatusCode, got.body)
		}
		to = html.UnescapeString(next[1])
	}
	if looks < 2 {
		t.Error("one request has looked through everything")
	}
	if got := b.get("/jobs?where=n%3D0"); !strings.Contains(got.body, `href="/jobs?all=1&amp;where=n%3D0"`) {
		t.Errorf("there is no way to look for longer:\n%s", got.body)
	}
}

// TestAnExpressionIsTried: the page of schedules says what an expression means, and where a wrong one is wrong.
func TestAnExpressionIsTried(t *testing.T) {
	s := start(t)
	b := s.signedIn("viewer-secret")
	if got := b.get("/schedules?expr=" + url.QueryEscape("0 0 12 * * ?") + "&tz=Europe%2FBerlin"); got.StatusCode != http.StatusOK || !strings.Contains(got.body, "At 12:00 every day") {
		t.Errorf("noon: %d %s", got.StatusCode, got.body)
	}
	if got := b.get("/schedules?expr=nonsense"); got.StatusCode != http.StatusOK || !strings.Contains(got.body, `role="alert"`) || !strings.Contains(got.body, "nightly") {
		t.Errorf("nonsense: %d %s", got.StatusCode, got.body)
	}
}
