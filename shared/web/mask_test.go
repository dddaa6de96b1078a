package web_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// TestMaskedFieldsAreShownNowhere: no page shows the value of a field whose name is masked, at any depth and in any case; what is run again
// from a form has it all the same, unless the form says otherwise.
func TestMaskedFieldsAreShownNowhere(t *testing.T) {
	s := start(t)
	const secret = "correct-horse"
	made := s.call("admin-secret", http.MethodPost, "/api/v1/jobs", `{"topic":"a","properties":{"user":"ada","logins":[{"PassWord":"`+secret+`"}]}}`)
	id := regexp.MustCompile(`"id":"([^"]+)"`).FindStringSubmatch(made.body)[1]
	s.call("admin-secret", http.MethodPost, "/api/v1/orders/%2Fc", `{"id":"1","variables":{"password":"`+secret+`"}}`)
	s.call("admin-secret", http.MethodPost, "/jobscheduler/master/api/event", `[{"TYPE":"Seen","key":"k","password":"`+secret+`"}]`)
	s.call("admin-secret", http.MethodPost, "/api/v1/canvases/demo/handlers/WORKER/%3Cb%3Egreet/events", `{"value":{"password":"`+secret+`"}}`)
	at := s.stamp()
	b := s.signedIn("admin-secret")
	for _, path := range []string{
		"/", "/jobs", "/task/" + id, "/act?do=job.again&id=" + id, "/orders", "/orders/%2Fc/1", "/orders/%2Fc/1?at=" + at, "/journal", "/journal?return=CustomEvent",
		"/audit?return=Event", "/cause/" + at, "/handlers/demo/WORKER/%3Cb%3Egreet",
	} {
		if got := b.get(path); got.StatusCode != http.StatusOK || strings.Contains(got.body, secret) {
			t.Errorf("%s: %d, or the secret is there:\n%s", path, got.StatusCode, got.body)
		}
	}
	again := b.post("/act", url.Values{"do": {"job.again"}, "id": {id}, "topic": {"a"}, "properties": {`{"user":"eve","logins":[{"PassWord":"•••"}]}`}})
	if again.StatusCode != http.StatusSeeOther {
		t.Fatalf("again: %d %s", again.StatusCode, again.body)
	}
	got := s.call("admin-secret", http.MethodGet, strings.Replace(again.Header.Get("Location"), "/task/", "/api/v1/jobs/", 1), "")
	if !strings.Contains(got.body, secret) || !strings.Contains(got.body, "eve") {
		t.Errorf("run again with %s", got.body)
	}
}

// TestLongPayloadsAreCut: a page shows the beginning of a long payload, and leads to the rest.
func TestLongPayloadsAreCut(t *testing.T) {
	s := start(t)
	made := s.call("admin-secret", http.MethodPost, "/api/v1/jobs", `{"topic":"a","properties":{"long":"`+strings.Repeat("x", 50_000)+`the end"}}`)
	id := regexp.MustCompile(`"id":"([^"]+)"`).FindStringSubmatch(made.body)[1]
	b := s.signedIn("viewer-secret")
	if got := b.get("/task/" + id); len(got.body) > 20_000 || !strings.Contains(got.body, `href="?whole=1"`) {
		t.Errorf("a page of %d bytes, or without a way to the rest", len(got.body))
	}
	if got := b.get("/task/" + id + "?whole=1"); !strings.Contains(got.body, "the end") {
		t.Errorf("the whole is not there")
	}
}
