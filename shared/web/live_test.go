package web_test

import (
	"bufio"
	"net/http"
	"strings"
	"testing"
)

// TestOpenPagesLearnOfChanges: an open page is told that the journal has grown after what it shows, at once where it has already; nobody
// without a session is.
func TestOpenPagesLearnOfChanges(t *testing.T) {
	s := start(t)
	b := s.signedIn("viewer-secret")
	page := b.get("/jobs")
	_, rest, live := strings.Cut(page.body, `data-after="`)
	after, _, _ := strings.Cut(rest, `"`)
	if !live || after != s.stamp() {
		t.Fatalf("the page was read after %q, want %s", after, s.stamp())
	}
	for range 2 { // the second time it has grown already
		request := b.request(http.MethodGet, "/live?after="+after, "")
		request.Header.Set("Accept", "text/event-stream")
		stream, err := b.c.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		s.call("admin-secret", http.MethodPost, "/jobscheduler/master/api/event", `[{"TYPE":"Noted","key":"k"}]`)
		told := false
		for lines := bufio.NewScanner(stream.Body); !told && lines.Scan(); {
			told = lines.Text() == "data: changed"
		}
		if stream.Body.Close(); !told {
			t.Error("the page is not told")
		}
	}
	if got := s.browser().get("/live?after=0"); got.StatusCode != http.StatusSeeOther {
		t.Errorf("without a session: %d", got.StatusCode)
	}
}
