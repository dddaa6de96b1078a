package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestDefinitionsAreChangedAfterALook: what a change would do is shown first, and changes nothing; a mistake is shown with its place; a role
// that may not is offered no form and refused.
func TestDefinitionsAreChangedAfterALook(t *testing.T) {
	s := start(t)
	b := s.signedIn("admin-secret")
	changed := strings.Replace(strings.Replace(declared, "0 0 3", "0 0 4", 1), "handlers: [{", "handlers: [{canvas: demo, space: WORKER, name: new, target: {instances: true}}, {", 1)
	got := b.post("/definitions", url.Values{"definitions": {changed}})
	for _, want := range []string{"added", "Handler:", "replaced", "Schedule:/nightly", "0 0 3", "0 0 4", "Apply"} {
		if got.StatusCode != http.StatusOK || !strings.Contains(got.body, want) {
			t.Errorf("the plan: %d without %s:\n%s", got.StatusCode, want, got.body)
		}
	}
	if page := b.get("/schedules"); strings.Contains(page.body, "0 0 4") {
		t.Error("a look at the plan has changed the schedule")
	}
	if got := b.post("/definitions", url.Values{"definitions": {"jobs: [{path: nowhere}]"}}); got.StatusCode != http.StatusBadRequest || !strings.Contains(got.body, "jobs[0].path") {
		t.Errorf("a mistake: %d\n%s", got.StatusCode, got.body)
	}
	apply := url.Values{"do": {"definitions.apply"}, "definitions": {changed}, "back": {"/definitions"}}
	v := s.signedIn("viewer-secret")
	if page := v.get("/definitions"); strings.Contains(page.body, "<textarea") || !strings.Contains(page.body, "nightly") {
		t.Errorf("a viewer's page: %s", page.body)
	}
	if got := v.post("/act", apply); got.StatusCode != http.StatusForbidden {
		t.Errorf("a viewer applies: %d", got.StatusCode)
	}
	if got := b.post("/act", apply); got.StatusCode != http.StatusSeeOther || got.Header.Get("Location") != "/definitions" {
		t.Errorf("applying: %d %s", got.StatusCode, got.body)
	}
	if page := b.get("/schedules"); !strings.Contains(page.body, "0 0 4") {
		t.Errorf("not applied: %s", page.body)
	}
}

// TestActsWithFurtherValues: acts whose request has a query, a header or a body of any JSON.
func TestActsWithFurtherValues(t *testing.T) {
	s := start(t)
	b := s.signedIn("admin-secret")
	if got := b.post("/act", url.Values{"do": {"handler.emit"}, "canvas": {"demo"}, "space": {"WORKER"}, "name": {"<b>greet"}, "value": {"no JSON"}}); got.StatusCode != http.StatusSeeOther || !strings.HasPrefix(got.Header.Get("Location"), "/task/") {
		t.Errorf("sending an event: %d %s\n%s", got.StatusCode, got.Header.Get("Location"), got.body)
	}
	if got := b.post("/act", url.Values{"do": {"event.emit"}, "events": {`[{"TYPE":"Noted","key":"k"}]`}, "back": {"/journal"}}); got.StatusCode != http.StatusSeeOther {
		t.Errorf("emitting: %d\n%s", got.StatusCode, got.body)
	}
	if page := b.get("/journal?return=CustomEvent"); !strings.Contains(page.body, "Noted") {
		t.Errorf("no event: %s", page.body)
	}
	if got := b.post("/act", url.Values{"do": {"job.add"}, "topic": {"a"}, "priority": {"high"}}); got.StatusCode != http.StatusBadRequest || !strings.Contains(got.body, "priority: want a number") {
		t.Errorf("a priority that is none: %d\n%s", got.StatusCode, got.body)
	}
}
