package web_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// TestTwoMoments: what differs between two moments is shown side by side, and what is alike is left out.
func TestTwoMoments(t *testing.T) {
	s := start(t)
	s.call("admin-secret", http.MethodPost, "/api/v1/orders/%2Fc", `{"id":"1"}`)
	before := s.stamp()
	s.call("admin-secret", http.MethodPost, "/api/v1/jobs", `{"topic":"a"}`)
	between := s.stamp()
	s.call("admin-secret", http.MethodPost, "/api/v1/jobs", `{"topic":"a"}`)
	s.call("admin-secret", http.MethodPut, "/api/v1/schedules/more", `{"cron":"0 0 0 1 1 ? 2099","job":"/topics/a"}`)
	b := s.signedIn("viewer-secret")
	for path, want := range map[string][]string{
		"/compare?at=" + before:                       {"/topics/a</td><td>–</td><td>2: waiting 2", "Schedule:/more</td><td>–</td><td>declared"},
		"/compare?at=" + before + "&with=" + between:  {"/topics/a</td><td>–</td><td>1: waiting 1"},
		"/compare?at=" + between + "&with=" + before:  {"/topics/a</td><td>1: waiting 1</td><td>–"},
		"/compare?at=" + between + "&with=" + between: {"No difference."},
	} {
		got := b.get(path)
		for _, text := range want {
			if got.StatusCode != http.StatusOK || !strings.Contains(got.body, text) || strings.Contains(got.body, "<td>/c</td>") {
				t.Errorf("%s: %d without %q, or with what is alike:\n%s", path, got.StatusCode, text, got.body)
			}
		}
	}
	if got := b.get("/compare?at=" + before + "&with=4000000000000000"); got.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("with a moment to come: %d", got.StatusCode)
	}
}

// TestATaskThroughTime: a task's page has its events, leads to what caused them, and says how it was at a moment.
func TestATaskThroughTime(t *testing.T) {
	s := start(t)
	before := s.stamp()
	made := s.call("admin-secret", http.MethodPost, "/api/v1/jobs", `{"topic":"a"}`)
	id := regexp.MustCompile(`"id":"([^"]+)"`).FindStringSubmatch(made.body)[1]
	added := s.stamp()
	s.call("admin-secret", http.MethodPost, "/api/v1/jobs", `{"topic":"a"}`) // another, whose events are not its
	s.call("admin-secret", http.MethodPost, "/api/v1/jobs/"+id+"/stop", "")
	stopped := s.stamp()
	b := s.signedIn("viewer-secret")
	page := b.get("/task/" + id)
	if n := strings.Count(page.body, "<td>TaskAdded</td>"); n != 1 || !strings.Contains(page.body, "/cause/"+added) {
		t.Errorf("%d times added:\n%s", n, page.body)
	}
	for at, want := range map[string]string{before: "no such task yet", added: "It waited to be started", stopped: "It was over"} {
		if got := b.get("/task/" + id + "?at=" + at); got.StatusCode != http.StatusOK || !strings.Contains(got.body, want) {
			t.Errorf("at %s: %d without %q:\n%s", at, got.StatusCode, want, got.body)
		}
	}
	if got := b.get("/cause/" + added); got.StatusCode != http.StatusOK || !strings.Contains(got.body, "TaskClosed") {
		t.Errorf("what it led to: %d\n%s", got.StatusCode, got.body)
	}
	if got := b.get("/cause/17"); got.StatusCode < 400 {
		t.Errorf("the cause of no event: %d", got.StatusCode)
	}
}

// TestAPagePlaysOn: a page of the past that plays leads to the next moment, never beyond the newest event, and stops there.
func TestAPagePlaysOn(t *testing.T) {
	s := start(t)
	first := s.stamp()
	s.call("admin-secret", http.MethodPost, "/api/v1/jobs", `{"topic":"a"}`)
	last := s.stamp()
	b := s.signedIn("viewer-secret")
	page := b.get("/?at=" + first + "&play=1h0m0s")
	if !strings.Contains(page.body, `hx-get="/?at=`+last+`&amp;play=1h0m0s"`) || !strings.Contains(page.body, "Stop playing") {
		t.Errorf("it does not play on to %s:\n%s", last, page.body)
	}
	if page := b.get("/?at=" + last + "&play=1h0m0s"); strings.Contains(page.body, "hx-get") {
		t.Errorf("it plays beyond the newest event:\n%s", page.body)
	}
}
