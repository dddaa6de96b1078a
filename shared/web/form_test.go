package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestAJobIsAddedAndAddedAgain: the form of a job takes properties as JSON, leads to the job, and begins with those of another job; what is
// no JSON is refused by its field, and nothing is added.
func TestAJobIsAddedAndAddedAgain(t *testing.T) {
	s := start(t)
	b := s.signedIn("operator-secret")
	form := url.Values{"do": {"job.add"}, "topic": {"a"}, "properties": {`{"name":`}, "back": {"/jobs"}}
	if got := b.post("/act", form); got.StatusCode != http.StatusBadRequest || !strings.Contains(got.body, "properties: want a JSON object") {
		t.Errorf("no JSON: %d %s", got.StatusCode, got.body)
	}
	if got := b.get("/jobs"); !strings.Contains(got.body, "No job is in this state.") {
		t.Error("a refused form has added a job")
	}
	form.Set("properties", `{"name":"<ada>"}`)
	got := b.post("/act", form)
	at := got.Header.Get("Location")
	if got.StatusCode != http.StatusSeeOther || !strings.HasPrefix(at, "/task/") {
		t.Fatalf("adding a job: %d to %q", got.StatusCode, at)
	}
	again := b.get("/act?do=job.again&id=" + strings.TrimPrefix(at, "/task/"))
	if !strings.Contains(again.body, "&lt;ada&gt;") || !strings.Contains(again.body, `name="topic" value="a"`) {
		t.Errorf("the form that is to begin with the job's fields: %s", again.body)
	}
	if got := s.signedIn("viewer-secret").post("/act", form); got.StatusCode != http.StatusForbidden {
		t.Errorf("a viewer adds a job: %d", got.StatusCode)
	}
}

// TestAnOrderThatIsGone: the page of an order that was removed tells what happened to it; that of one that never was is a 404.
func TestAnOrderThatIsGone(t *testing.T) {
	s := start(t)
	b := s.signedIn("admin-secret")
	b.post("/act", url.Values{"do": {"order.add"}, "chain": {"/c"}, "id": {"mine"}})
	b.post("/act", url.Values{"do": {"order.remove"}, "chain": {"/c"}, "id": {"mine"}})
	if got := b.get("/orders/%2Fc/mine"); got.StatusCode != http.StatusOK || !strings.Contains(got.body, "OrderRemoved") {
		t.Errorf("an order that is gone: %d %s", got.StatusCode, got.body)
	}
	if got := b.get("/orders/%2Fc/never"); got.StatusCode != http.StatusNotFound {
		t.Errorf("an order that never was: %d", got.StatusCode)
	}
}
