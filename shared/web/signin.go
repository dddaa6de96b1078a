package web

import (
	"crypto/sha256"
	"errors"
	"net/http"
	"net/url"
	"path"
	"strings"
)

// maxForm bounds the body of a form.
const maxForm = 256 << 10

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
	address := visitorOf(r, d.proxies)
	may, err := d.attempts.begin(r.Context(), address)
	if err != nil {
		d.fail(w, r, err)
		return
	}
	if !may {
		w.Header().Set("Retry-After", "60")
		p.Problem = "Too many attempts have failed. Wait a minute."
		d.askForToken(w, r, http.StatusTooManyRequests, p)
		return
	}
	secret := strings.TrimSpace(r.PostFormValue("token"))
	token := d.sessions.tokenWith(sha256.Sum256([]byte(secret)))
	if secret == "" || token == nil {
		p.Problem = "This token is not known."
		d.askForToken(w, r, http.StatusUnauthorized, p)
		return
	}
	if err := errors.Join(d.attempts.forget(r.Context(), address), d.sessions.begin(w, r, token)); err != nil {
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

// local returns a path of this server: next if it is one, else the first page. That comes also after signing in on the way to where one signs
// in or out.
func local(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || u.Opaque != "" || !strings.HasPrefix(next, "/") ||
		strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n\t") {
		return "/"
	}
	if at := path.Clean(u.Path); at == "/login" || at == "/logout" {
		return "/"
	}
	return next
}

// redirect sends a browser on after a form, by GET.
func redirect(w http.ResponseWriter, r *http.Request, to string) {
	http.Redirect(w, r, to, http.StatusSeeOther)
}
