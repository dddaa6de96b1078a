package web_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// stamp returns the newest EventId.
func (s *server) stamp() string {
	s.t.Helper()
	got := s.call("admin-secret", http.MethodGet, "/jobscheduler/master/api/event?return=Event&limit=-1", "")
	found := regexp.MustCompile(`"eventSnapshots":\[\{"eventId":(\d+)`).FindStringSubmatch(got.body)
	if found == nil {
		s.t.Fatalf("no event: %s", got.body)
	}
	return found[1]
}

// TestPagesOfThePast: at every moment the pages count what was there then, say so, and offer no act.
func TestPagesOfThePast(t *testing.T) {
	s := start(t)
	type was struct {
		at            string
		orders, tasks int
	}
	var all []was
	orders, tasks := 0, 0
	for n := range 12 {
		switch {
		case n%4 == 3:
			s.call("admin-secret", http.MethodDelete, fmt.Sprintf("/api/v1/orders/%%2Fc/%d", n-1), "")
			orders--
		case n%2 == 0:
			s.call("admin-secret", http.MethodPost, "/api/v1/orders/%2Fc", fmt.Sprintf(`{"id":"%d"}`, n))
			orders++
		default:
			s.call("admin-secret", http.MethodPost, "/api/v1/jobs", `{"topic":"a"}`)
			tasks++
		}
		all = append(all, was{s.stamp(), orders, tasks})
	}
	b := s.signedIn("admin-secret")
	for _, w := range all {
		got := b.get("/?at=" + w.at)
		want := []string{"As of ", "Back to now"}
		if w.orders > 0 {
			want = append(want, fmt.Sprintf(`/c</a></td><td class="n">%d<`, w.orders))
		}
		if w.tasks > 0 {
			want = append(want, fmt.Sprintf(`/topics/a</td><td class="n">%d<`, w.tasks))
		}
		for _, text := range want {
			if got.StatusCode != http.StatusOK || !strings.Contains(got.body, text) {
				t.Errorf("at %s: %d without %s:\n%s", w.at, got.StatusCode, text, got.body)
			}
		}
		listed := b.get("/orders?at=" + w.at)
		if n := strings.Count(listed.body, `<a href="/orders/`); n != w.orders {
			t.Errorf("at %s: %d orders are listed, want %d", w.at, n, w.orders)
		}
		if n := strings.Count(b.get("/jobs?at="+w.at).body, `<a href="/task/`); n != w.tasks {
			t.Errorf("at %s: %d tasks are listed, want %d", w.at, n, w.tasks)
		}
	}
	first := all[0].at
	for _, page := range []string{"/", "/jobs", "/orders", "/orders/%2Fc/0", "/chains/%2Fc", "/journal", "/definitions", "/audit", "/failures", "/queues", "/handlers", "/sources",
		"/schedules", "/schedules/nightly", "/streams", "/streams/none", "/instances"} {
		if got := b.get(page + "?at=" + first); got.StatusCode != http.StatusOK || strings.Contains(got.body, `href="/act`) || strings.Contains(got.body, "hx-get") {
			t.Errorf("%s of the past: %d, or it offers acts, or changes by itself:\n%s", page, got.StatusCode, got.body)
		}
	}
	for path, want := range map[string]int{
		"/acts/none?at=" + first: http.StatusUnprocessableEntity, "/orders?at=4000000000000000": http.StatusUnprocessableEntity,
		"/queues?at=4000000000000000": http.StatusUnprocessableEntity, "/instances?at=x": http.StatusBadRequest,
		"/orders?at=4000000000000000&path=/c": http.StatusUnprocessableEntity, "/journal?at=4000000000000000": http.StatusUnprocessableEntity, "/?at=x": http.StatusBadRequest,
	} {
		if got := b.get(path); got.StatusCode != want {
			t.Errorf("GET %s: %d, want %d", path, got.StatusCode, want)
		}
	}
}

// TestTheAuditThen: the page of acts as of a moment shows those up to it, and its links stay there.
func TestTheAuditThen(t *testing.T) {
	s := start(t)
	var stamps []string
	for n := range 6 {
		act := []string{"stop", "start"}[n%2]
		s.call("admin-secret", http.MethodPost, "/api/v1/chains/%2Fc/"+act, "")
		stamps = append(stamps, s.stamp())
	}
	b := s.signedIn("viewer-secret")
	for n, at := range stamps {
		got := b.get("/audit?at=" + at)
		if shown := strings.Count(got.body, "<td>JobChainStateChanged</td>"); got.StatusCode != http.StatusOK || shown != n+1 {
			t.Errorf("after %d acts: %d, %d are shown", n+1, got.StatusCode, shown)
		}
		if !strings.Contains(got.body, `<a href="/audit?by=ada&amp;at=`+at+`">`) || !strings.Contains(got.body, `name="at" value="`+at+`"`) {
			t.Errorf("the links of the page lead away from its moment:\n%s", got.body)
		}
	}
}

// TestWhatHadHappenedToAnOrder: a page of an order as of a moment shows what had happened to it then, however much has happened since.
func TestWhatHadHappenedToAnOrder(t *testing.T) {
	s := start(t)
	s.call("admin-secret", http.MethodPost, "/api/v1/orders/%2Fc", `{"id":"1"}`)
	s.call("admin-secret", http.MethodPost, "/api/v1/orders/%2Fc/1/suspend", "")
	at := s.stamp()
	for range 60 {
		s.call("admin-secret", http.MethodPost, "/api/v1/orders/%2Fc/1/resume", "")
		s.call("admin-secret", http.MethodPost, "/api/v1/orders/%2Fc/1/suspend", "")
	}
	got := s.signedIn("viewer-secret").get("/orders/%2Fc/1?at=" + at)
	if got.StatusCode != http.StatusOK || strings.Count(got.body, "<td>OrderSuspended<") != 1 || !strings.Contains(got.body, "OrderAdded") {
		t.Errorf("%d, without what had happened to the order:\n%s", got.StatusCode, got.body)
	}
}
