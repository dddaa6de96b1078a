package web_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// TestTheSoonestTicksAreShown: the first page shows the schedules that fire soonest, whatever their names, and suspended ones last.
func TestTheSoonestTicksAreShown(t *testing.T) {
	s := start(t)
	for i := range 12 { // of which two are not shown
		s.call("admin-secret", http.MethodPut, fmt.Sprintf("/api/v1/schedules/later-%02d", i), `{"cron":"0 0 0 1 1 ? 2099","job":"/topics/a"}`)
	}
	s.call("admin-secret", http.MethodPut, "/api/v1/schedules/z-soonest", `{"cron":"@every 30s","job":"/topics/a"}`)
	s.call("admin-secret", http.MethodPut, "/api/v1/schedules/a-suspended", `{"cron":"@every 1s","job":"/topics/a"}`)
	s.call("admin-secret", http.MethodPost, "/api/v1/schedules/a-suspended/suspend", "")
	page := s.signedIn("viewer-secret").get("/").body
	soonest, nightly, later := strings.Index(page, "z-soonest"), strings.Index(page, "nightly"), strings.Index(page, "later-00")
	if soonest < 0 || nightly < soonest || later < nightly || strings.Contains(page, "a-suspended") || strings.Contains(page, "later-11") {
		t.Errorf("soonest at %d, nightly at %d, later at %d:\n%s", soonest, nightly, later, page)
	}
}

// TestSchedulesByWhenTheyFire: the list in that order goes on by its cursor, and has each schedule once.
func TestSchedulesByWhenTheyFire(t *testing.T) {
	s := start(t)
	for i := range 7 {
		s.call("admin-secret", http.MethodPut, fmt.Sprintf("/api/v1/schedules/s%d", i), fmt.Sprintf(`{"cron":"0 0 0 1 1 ? %d","job":"/topics/a"}`, 2090-i/2))
	}
	var names []string
	for path := "/api/v1/schedules?order=next&limit=3"; path != ""; {
		got := s.call("viewer-secret", http.MethodGet, path, "")
		for _, found := range regexp.MustCompile(`"name":"([^"]+)"`).FindAllStringSubmatch(got.body, -1) {
			names = append(names, found[1])
		}
		link, _, _ := strings.Cut(strings.TrimPrefix(got.Header.Get("Link"), "<"), ">")
		path = link
	}
	if want := "nightly s6 s4 s5 s2 s3 s0 s1"; strings.Join(names, " ") != want {
		t.Errorf("the schedules are %v, want %s", names, want)
	}
	if got := s.call("viewer-secret", http.MethodGet, "/api/v1/schedules?order=x", ""); got.StatusCode != http.StatusBadRequest || !strings.Contains(got.body, "query.order") {
		t.Errorf("an order that is none: %d %s", got.StatusCode, got.body)
	}
}
