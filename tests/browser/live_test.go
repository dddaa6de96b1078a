package browser_test

import (
	"fmt"
	"net/url"
	"testing"
	"time"
)

// TestALivePageIsThePageLoadedAgain: a page that has been open while things happened shows what it shows when it is loaded again, also after the
// server was away.
func TestALivePageIsThePageLoadedAgain(t *testing.T) {
	s := serve(t, demo)
	f := fill(s, "some text")
	b := open(t, s)
	chain := url.PathEscape("/demo/parcel")
	for i, path := range []string{"/", "/jobs", "/queues", "/orders", "/chains/" + chain, "/journal", "/audit", "/schedules", "/task/" + f.waiting} {
		b.visit(path)
		b.same()
		s.ask("POST", "/api/v1/jobs", map[string]any{"topic": "later"})
		s.ask("POST", "/api/v1/orders/"+chain, map[string]any{"id": fmt.Sprintf("more %d", i), "variables": map[string]any{"country": "de"}})
		s.ask("POST", "/api/v1/queues/main/"+[]string{"suspend", "resume"}[i%2], nil)
		s.ask("POST", "/jobscheduler/master/api/event", []any{map[string]any{"TYPE": "Seen", "key": fmt.Sprint(i)}})
		if i == 0 {
			b.restart()
		}
		b.reaches(s.stamp())
		b.same()
	}
}

// restart lets the server end and come back, while the page stays open.
func (b *tab) restart() {
	b.t.Helper()
	if err := b.s.Stop(); err != nil {
		b.t.Fatal(err)
	}
	if err := b.s.Start(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	b.complaints() // of the time without a server
}

// reaches waits until the page, by itself, shows what was there at a moment.
func (b *tab) reaches(stamp string) {
	b.t.Helper()
	eventually(b.t, "the page is of "+stamp, func() bool {
		return found[bool](b, fmt.Sprintf("Number(document.querySelector('main').dataset.after) >= %s", stamp))
	})
}

// same waits until the page shows what it shows when it is loaded again. Times are left out, since they go on, and what the page's script adds.
func (b *tab) same() {
	b.t.Helper()
	const shown = `(async () => {
		const text = (main) => { const all = main.cloneNode(true); all.querySelectorAll("time, .copy, #moment, .chart, .note").forEach(e => e.remove()); return all.textContent.replace(/\s+/g, " ") };
		const again = new DOMParser().parseFromString(await (await fetch(location.href, {headers: {Accept: "text/html"}})).text(), "text/html");
		const [live, loaded] = [text(document.querySelector("main")), text(again.querySelector("main"))];
		return live === loaded ? "" : live + "\n\nloaded again:\n" + loaded;
	})()`
	deadline, differs := time.Now().Add(patience), found[string](b, shown)
	for ; differs != "" && time.Now().Before(deadline); differs = found[string](b, shown) {
		<-time.After(100 * time.Millisecond)
	}
	if differs != "" {
		b.t.Errorf("%s: it shows\n%s", b.at(), differs)
	}
}
