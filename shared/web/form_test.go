package web_test

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
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

// TestEventsOfLongAgo: a page looks back for events as far as it takes; where reading takes long it stops, says how far it has looked, and
// looks on when it is asked to.
func TestEventsOfLongAgo(t *testing.T) {
	s := start(t)
	b := s.signedIn("admin-secret")
	s.call("admin-secret", http.MethodPost, "/jobscheduler/master/api/event", `[{"TYPE":"Noted","key":"long ago"}]`)
	s.now = s.now.Add(3 * time.Hour)
	if got := b.get("/journal?return=Noted"); !strings.Contains(got.body, "long ago") || strings.Contains(got.body, "looked through back to") {
		t.Errorf("three hours later: %s", got.body)
	}
	s.pace = time.Second
	if got := b.get("/journal?return=Noted"); strings.Contains(got.body, "long ago") || !strings.Contains(got.body, "looked through back to") {
		t.Errorf("where reading takes long: %s", got.body)
	}
	if got := b.get("/journal?return=Noted&all=1"); !strings.Contains(got.body, "long ago") {
		t.Errorf("looking further back: %s", got.body)
	}
}

// TestAudit: the page of acts shows who did what, newest first; added jobs only where everything is asked for, and those of one token where
// that is.
func TestAudit(t *testing.T) {
	s := start(t)
	s.call("admin-secret", http.MethodPost, "/api/v1/chains/%2Fc/stop", "")
	s.call("operator-secret", http.MethodPost, "/api/v1/jobs", `{"topic":"a"}`)
	s.call("operator-secret", http.MethodPost, "/api/v1/chains/%2Fc/start", "")
	b := s.signedIn("viewer-secret")
	for _, c := range []struct {
		query string
		want  []string
	}{
		{"?return=JobChainEvent", []string{"otto JobChainStateChanged", "ada JobChainStateChanged"}},
		{"?by=ada", []string{"ada JobChainStateChanged"}},
		{"?return=Event&by=otto", []string{"otto JobChainStateChanged", "otto TaskAdded"}},
		{"?by=nobody", nil},
	} {
		var got []string
		for _, row := range regexp.MustCompile(`<a href="/audit\?by=\w+">(\w+)</a></td><td>(\w+)<`).FindAllStringSubmatch(b.get("/audit"+c.query).body, -1) {
			got = append(got, row[1]+" "+row[2])
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("/audit%s shows %q, want %q", c.query, got, c.want)
		}
	}
}
