package web_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/web"
	"github.com/millrace/millrace/tests/gateway"
)

// These are what the dashboard owes to functions: several processes at once, each frozen between requests, behind a gateway.

// TestOneLimitForAllProcesses: ten sign-ins of an address may fail, however many processes they come to, and however many come at once. Those
// that succeed count for nothing.
func TestOneLimitForAllProcesses(t *testing.T) {
	t.Parallel()
	for before := range 2 { // failures: the first of all is written in another way
		on := &meeting{Store: memory.New(memory.Options{})}
		processes := []*server{startOn(t, on), startOn(t, on)}
		for i := range 11 * before {
			processes[i%2].signedIn("admin-secret")
		}
		for range before {
			processes[0].browser().post("/login", url.Values{"token": {"guess"}})
		}
		on.await(40)
		statuses := make(chan int, 40)
		for i := range cap(statuses) {
			b := processes[i%2].browser()
			go func() { statuses <- b.post("/login", url.Values{"token": {"guess"}}).StatusCode }()
		}
		got := make(map[int]int)
		for range cap(statuses) {
			got[<-statuses]++
		}
		if got[http.StatusUnauthorized] != 10-before || got[http.StatusTooManyRequests] != 30+before {
			t.Errorf("of 40 guesses at once after %d: %v, want ten times 401 together, and 429", before, got)
		}
		for i, s := range processes {
			if got := s.browser().post("/login", url.Values{"token": {"admin-secret"}}); got.StatusCode != http.StatusTooManyRequests {
				t.Errorf("process %d after ten failures: %d, want 429", i, got.StatusCode)
			}
		}
	}
}

// TestTheLimitIsOfTheVisitor: behind a proxy that is known, who guesses keeps nobody else out; to anyone else's header nobody listens, so that
// another one in each guess gains nothing.
func TestTheLimitIsOfTheVisitor(t *testing.T) {
	t.Parallel()
	s := start(t)
	signIn := func(remote, secret string, forwarded ...string) int {
		r := httptest.NewRequest(http.MethodPost, "/login", strings.NewReader(url.Values{"token": {secret}}.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.RemoteAddr, r.Header["X-Forwarded-For"] = remote, forwarded
		w := httptest.NewRecorder()
		s.Config.Handler.ServeHTTP(w, r)
		return w.Code
	}
	for _, tt := range []struct {
		name, remote      string
		guesser, somebody []string // X-Forwarded-For; a %d in it is another number in each guess
		want              int      // what somebody gets, by the same connection
	}{
		{"by a proxy", "10.0.0.1:80", []string{"192.0.2.1"}, []string{"192.0.2.2"}, http.StatusSeeOther},
		{"by a proxy that adds to what it gets", "10.0.0.1:80", []string{"203.0.113.%d, 192.0.2.3"}, []string{"203.0.113.99, 192.0.2.3"}, http.StatusTooManyRequests},
		{"in several headers", "10.0.0.1:80", []string{"203.0.113.%d", "192.0.2.4"}, []string{"192.0.2.4"}, http.StatusTooManyRequests},
		{"by two proxies", "10.0.0.1:80", []string{"192.0.2.5, 10.0.0.2"}, []string{"192.0.2.6, 10.0.0.2"}, http.StatusSeeOther},
		{"with ports", "[::ffff:10.0.0.5]:80", []string{"[2001:db8::1]:%d"}, []string{"[2001:db8::2]:9"}, http.StatusSeeOther},
		{"by a proxy that says nothing", "10.0.0.3:80", nil, nil, http.StatusTooManyRequests},
		{"by a proxy that says what is no address", "10.0.0.4:80", []string{"unknown-%d"}, nil, http.StatusTooManyRequests},
		{"without a proxy", "192.0.2.7:80", []string{"203.0.113.%d"}, []string{"203.0.113.99"}, http.StatusTooManyRequests},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for i := range 10 {
				forwarded := slices.Clone(tt.guesser)
				for j := range forwarded {
					forwarded[j] = strings.ReplaceAll(forwarded[j], "%d", strconv.Itoa(i+1))
				}
				if got := signIn(tt.remote, "guess", forwarded...); got != http.StatusUnauthorized {
					t.Fatalf("guess %d: %d, want 401", i, got)
				}
			}
			if got := signIn(tt.remote, "admin-secret", tt.somebody...); got != tt.want {
				t.Errorf("somebody with the right token: %d, want %d", got, tt.want)
			}
		})
	}
}

// meeting is a store in which so many attempts to sign in meet: the first reads of what has failed return when all have been made.
type meeting struct {
	store.Store
	reads atomic.Int64
	all   chan struct{}
}

// await lets that many attempts meet.
func (m *meeting) await(n int64) {
	m.reads.Store(n)
	m.all = make(chan struct{})
}

// Get reads items.
func (m *meeting) Get(ctx context.Context, keys ...store.Key) ([]*store.Item, error) {
	items, err := m.Store.Get(ctx, keys...)
	if strings.HasPrefix(keys[0].Partition, "signin/") {
		switch left := m.reads.Add(-1); {
		case left == 0:
			close(m.all)
		case left > 0:
			<-m.all
		}
	}
	return items, err
}

// TestASessionIsOfAllProcesses: who has signed in at one process is known to the others, and is signed out at all of them at once.
func TestASessionIsOfAllProcesses(t *testing.T) {
	t.Parallel()
	on := memory.New(memory.Options{})
	one, other := startOn(t, on), startOn(t, on)
	here := one.signedIn("viewer-secret")
	there := &browser{t, other, here.c} // cookies go by the host, which both share
	if got := there.get("/jobs"); got.StatusCode != http.StatusOK {
		t.Errorf("at the other process: %d", got.StatusCode)
	}
	kept := here.c.Jar.Cookies(&url.URL{Scheme: "http", Host: "127.0.0.1", Path: "/"})
	if got := there.post("/logout", nil); got.StatusCode != http.StatusSeeOther || len(kept) != 1 {
		t.Fatalf("signing out: %d, with %v", got.StatusCode, kept)
	}
	r := one.browser().request(http.MethodGet, "/jobs", "")
	r.AddCookie(kept[0])
	if got := one.browser().do(r); got.StatusCode != http.StatusSeeOther {
		t.Errorf("the first process afterwards: %d, want it led to sign in", got.StatusCode)
	}
}

// somebody is an id of who writes to streams.
const somebody = "0b6b8a5e-4a4e-4b6c-9a57-0f0d3a1d8c11"

// TestNamesWithSlashesBehindAGateway: pages of names that hold slashes are found where a gateway has unescaped these, or has dropped one of two.
func TestNamesWithSlashesBehindAGateway(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn("admin-secret")
	s.call("admin-secret", http.MethodPost, "/api/v1/orders/%2Fc", `{"id":"7"}`)
	s.call("admin-secret", http.MethodPost, "/api/v1/orders/%2Ffolder%2Fd", `{"id":"8"}`)
	said := b.request(http.MethodPost, "/api/v1/streams/a%2Fb/events", `{"event":{"name":"said"},"payload":{},"trigger":{"type":"manual","name":"t"},`+
		`"system":{"id":"`+somebody+`","name":"n","time":"2026-01-01T00:00:00Z","timezone":"UTC"}}`)
	said.Header.Set("Authorization", "Bearer admin-secret")
	said.Header.Set("Content-Type", "application/json")
	said.Header.Set("X-Producer-ID", somebody)
	if got := b.do(said); got.StatusCode != http.StatusCreated {
		t.Fatalf("a stream: %d %s", got.StatusCode, got.body)
	}
	for escaped, all := range map[string][]string{
		"/chains/%2Fc":            {"/chains//c", "/chains/c"},
		"/chains/%2Ffolder%2Fd":   {"/chains//folder/d", "/chains/folder/d", "/chains/%2Ffolder/d"},
		"/orders/%2Fc/7":          {"/orders//c/7", "/orders/c/7"},
		"/orders/%2Ffolder%2Fd/8": {"/orders//folder/d/8", "/orders/folder/d/8"},
		"/streams/a%2Fb":          {"/streams/a/b"},
	} {
		want := b.get(escaped)
		if want.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d\n%s", escaped, want.StatusCode, want.body)
		}
		for _, path := range all {
			if got := b.get(path); got.StatusCode != http.StatusOK || acts(got.body) != acts(want.body) {
				t.Errorf("%s: %d with %s, want what %s has: %s", path, got.StatusCode, acts(got.body), escaped, acts(want.body))
			}
		}
	}
	for _, path := range []string{"/chains/", "/chains//", "/orders//", "/orders//c", "/streams//", "/nothing//c"} {
		if got := b.get(path); got.StatusCode != http.StatusNotFound && got.StatusCode != http.StatusTemporaryRedirect {
			t.Errorf("%s: %d, want no page", path, got.StatusCode)
		}
	}
}

// acts returns the acts that a page offers, but for the address that they lead back to.
func acts(page string) string {
	all := regexp.MustCompile(`href="(/act\?[^"]*)"`).FindAllStringSubmatch(page, -1)
	return regexp.MustCompile(`back=[^&]*&amp;`).ReplaceAllString(fmt.Sprint(all), "")
}

// TestAnOpenPageWhereWaitingCosts: a page that is open is told at once whether something has happened, and when to ask again.
func TestAnOpenPageWhereWaitingCosts(t *testing.T) {
	t.Parallel()
	s := startWith(t, memory.New(memory.Options{}), api.Options{WaitsCost: true})
	b := s.signedIn("viewer-secret")
	after := s.stamp()
	if got := b.get("/live?after=" + after); got.body != "retry: 5000\n\n" {
		t.Errorf("where nothing has happened: %q", got.body)
	}
	s.call("admin-secret", http.MethodPost, "/jobscheduler/master/api/event", `[{"TYPE":"Noted","key":"k"}]`)
	r := b.request(http.MethodGet, "/live?after=0", "") // as the browser asks again: what it was told last is in the header
	r.Header.Set("Last-Event-ID", after)
	if got, want := b.do(r), "retry: 5000\n\nid: "+s.stamp()+"\ndata: changed\n\n"; !strings.HasPrefix(got.body, want) {
		t.Errorf("where something has happened: %q, want %q", got.body, want)
	}
}

// TestNoRouteTakesAPage: the routes of template.yaml take to the dashboard's function whatever the dashboard serves.
func TestNoRouteTakesAPage(t *testing.T) {
	t.Parallel()
	routes := gateway.ReadRoutes(t, "../../template.yaml")
	name := regexp.MustCompile(`\{\w+(\.\.\.)?\}`)
	for _, pattern := range web.Patterns() {
		method, path, _ := strings.Cut(strings.TrimSuffix(pattern, "{$}"), " ")
		if function := routes.Function(method, name.ReplaceAllString(path, "a")); function != "dashboard" {
			t.Errorf("%s goes to the function %s", pattern, function)
		}
	}
}
