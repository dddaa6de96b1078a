package browser_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestByAnyName: over plain HTTP the dashboard does the same under any name of its host. Browsers tell a server there less of where a form
// is from than at localhost: the header Origin alone.
func TestByAnyName(t *testing.T) {
	s := serve(t, demo)
	b := openAt(t, s, strings.Replace(s.URL(), "127.0.0.1", elsewhere, 1))
	b.visit("/queues")
	b.shows("Queue")
	b.visit("/jobs")
	b.follow("Add a job")
	b.do(chromedp.SendKeys("#topic", "later"))
	b.follow("Add a job")
	b.shows("QUEUED")

	b.visit("/definitions")
	b.follow("Show what would change")
	b.shows("would change")

	b.within("//header", "Sign out")
	b.visit("/jobs")
	b.shows("Token")
}

// TestAFormOfAnotherSite is refused, by a page, under any name of the dashboard's host.
func TestAFormOfAnotherSite(t *testing.T) {
	s := serve(t, demo)
	named := strings.Replace(s.URL(), "127.0.0.1", elsewhere, 1)
	for _, url := range []string{s.URL(), named} {
		other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte(`<main><form method="post" action="` + url + `/login"><input name="token" value="` + token + `"><button>Win</button></form></main>`))
		}))
		t.Cleanup(other.Close)
		b := openAt(t, s, url)
		b.do(chromedp.Navigate(other.URL), chromedp.WaitReady("main"))
		b.follow("Win")
		b.shows("another site")
		b.complaints() // of its status
	}
}
