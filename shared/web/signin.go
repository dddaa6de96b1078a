package web

import (
	"crypto/sha256"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Of one address, so many sign-ins may fail within a minute.
const (
	maxFailures   = 10
	failureWindow = time.Minute
)

// maxForm bounds the body of a form.
const maxForm = 256 << 10

// failures counts the failed sign-ins of each address. Each process counts its own.
type failures struct {
	now func() time.Time

	mu sync.Mutex
	of map[string][]time.Time // the newest, at most maxFailures of each
}

// tooMany reports whether the address has to wait.
func (f *failures) tooMany(address string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	times := f.of[address]
	return len(times) == maxFailures && f.now().Sub(times[0]) < failureWindow
}

// add notes a failure, and forgets addresses whose failures are all over.
func (f *failures) add(address string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.of == nil {
		f.of = make(map[string][]time.Time)
	}
	for other, times := range f.of {
		if f.now().Sub(times[len(times)-1]) >= failureWindow {
			delete(f.of, other)
		}
	}
	times := append(f.of[address], f.now())
	f.of[address] = times[max(0, len(times)-maxFailures):]
}

func addressOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// signInPage is what the template of the sign-in shows.
type signInPage struct{ Next, Problem string }

func (d *Dashboard) showSignIn(w http.ResponseWriter, r *http.Request) {
	d.askForToken(w, r, http.StatusOK, signInPage{Next: local(r.URL.Query().Get("next"))})
}

func (d *Dashboard) askForToken(w http.ResponseWriter, r *http.Request, status int, p signInPage) {
	d.renderPage(w, r, status, frame{View: "login", Title: "Sign in", Data: p})
}

func (d *Dashboard) signIn(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	p := signInPage{Next: local(r.FormValue("next"))}
	address := addressOf(r)
	if d.signIns.tooMany(address) {
		w.Header().Set("Retry-After", "60")
		p.Problem = "Too many attempts have failed. Wait a minute."
		d.askForToken(w, r, http.StatusTooManyRequests, p)
		return
	}
	secret := strings.TrimSpace(r.PostFormValue("token"))
	token := d.sessions.tokenWith(sha256.Sum256([]byte(secret)))
	if secret == "" || token == nil {
		d.signIns.add(address)
		p.Problem = "This token is not known."
		d.askForToken(w, r, http.StatusUnauthorized, p)
		return
	}
	if err := d.sessions.begin(w, r, token); err != nil {
		d.fail(w, r, err)
		return
	}
	redirect(w, r, p.Next)
}

func (d *Dashboard) signOut(w http.ResponseWriter, r *http.Request) {
	if err := d.sessions.end(w, r); err != nil {
		d.fail(w, r, err)
		return
	}
	redirect(w, r, "/login")
}

// local returns a path of this server: next if it is one, else the first page.
func local(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || u.Opaque != "" || !strings.HasPrefix(next, "/") ||
		strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n\t") {
		return "/"
	}
	return next
}

// redirect sends a browser on after a form, by GET.
func redirect(w http.ResponseWriter, r *http.Request, to string) {
	http.Redirect(w, r, to, http.StatusSeeOther)
}
