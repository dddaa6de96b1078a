package web_test

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestASchedulesPage: it shows the next ticks, says which of them a change of the clock moves, skips or doubles, and what has happened.
func TestASchedulesPage(t *testing.T) {
	s := start(t)
	s.now = time.Date(2027, 3, 1, 0, 0, 0, 0, time.UTC) // by which the dashboard looks ahead
	for name, body := range map[string]string{
		"moved": `{"cron":"0 30 2 * * ?","timezone":"Europe/Berlin","job":"/topics/a"}`, "lost": `{"cron":"0 30 2 * * ?","timezone":"Europe/Berlin","dst":"quartz","job":"/topics/a"}`,
		"hourly": `{"cron":"0 15 * * * ?","timezone":"Europe/Berlin","job":"/topics/a"}`,
	} {
		if got := s.call("admin-secret", http.MethodPut, "/api/v1/schedules/"+name, body); got.StatusCode >= http.StatusBadRequest {
			t.Fatal(name, got.StatusCode, got.body)
		}
	}
	s.call("admin-secret", http.MethodPost, "/api/v1/schedules/moved/suspend", "")
	b := s.signedIn("operator-secret")
	for path, want := range map[string][]string{
		"/schedules":         {`href="/schedules/moved"`},
		"/schedules/moved":   {"never shows 02:30:00: that tick is moved to 03:00:00 CEST", "shows 02:30:00 twice: it fires once, at 02:30:00 CEST", "ScheduleSuspended", "None while it is suspended", "do=schedule.resume"},
		"/schedules/lost":    {"never shows 02:30:00: there is no tick for it", "it fires once, at 02:30:00 CET", "daylight saving as in quartz"},
		"/schedules/hourly":  {"it fires both times, at 02:15:00 CEST and 02:15:00 CET"},
		"/schedules/nightly": {"Within a year none changes when it fires", "Nothing that the journal still has"},
		"/schedules?expr=0+30+2+*+*+%3F&tz=Europe%2FBerlin": {"that tick is moved to 03:00:00 CEST"},
	} {
		got := b.get(path)
		for _, text := range want {
			if got.StatusCode != http.StatusOK || !strings.Contains(got.body, text) {
				t.Errorf("%s: %d without %q:\n%s", path, got.StatusCode, text, got.body)
			}
		}
	}
	if got := b.get("/schedules/none"); got.StatusCode != http.StatusNotFound {
		t.Errorf("a schedule that is none: %d", got.StatusCode)
	}
	// A tick that the clock's change moves is marked where it is listed.
	s.mu.Lock()
	s.now = time.Now()
	s.mu.Unlock()
	s.call("admin-secret", http.MethodPut, "/api/v1/schedules/yearly", `{"cron":"0 30 2 ? 3 SUNL","timezone":"Europe/Berlin","job":"/topics/a"}`)
	if got := b.get("/schedules/yearly"); !strings.Contains(got.body, `</code> <strong class="bad">The clock goes forward`) {
		t.Errorf("the tick is not marked:\n%s", got.body)
	}
}
