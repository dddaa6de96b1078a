package web

import (
	"context"
	"embed"
	"io/fs"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
)

// Options of a dashboard. API, Tokens and Store are required.
type Options struct {
	API    *api.API              // serves what pages show and do, and every request that is not the dashboard's
	Tokens func() []access.Token // returns those by which people may sign in now
	Store  store.Store           // holds the sessions

	// Journal is the API's: pages read from it how many objects there were at a moment. Required.
	Journal Counter

	// Proxies are the networks of the proxies before the dashboard: for a request from one of these, the limit on failed sign-ins counts the
	// address in X-Forwarded-For. Default: none, and the header counts for nothing.
	Proxies []netip.Prefix

	Mask []string     // names of fields, in any case, whose values no page shows
	Log  *slog.Logger // default: discards

	// Patience is how long a page looks for what is rare in a long journal, before it shows what it has found. Default: 40 ms, which is
	// much where the store is on the same machine.
	Patience time.Duration

	// Now returns the time by which sessions end. Default [time.Now].
	Now func() time.Time
}

// Counter reads projections, now and as they were; a [journal.Journal] is one.
type Counter interface {
	SnapshotOf(ctx context.Context, fold string, p journal.Part, each func(key string, value []byte)) (event.ID, error)
	SnapshotAt(ctx context.Context, fold string, at event.ID, p journal.Part, each func(key string, value []byte)) error
}

// Dashboard serves the pages, and passes every other request to the API. It is safe for concurrent use.
type Dashboard struct {
	api      *api.API
	sessions sessions
	attempts attempts
	proxies  []netip.Prefix
	masks    masks
	journal  Counter
	patience time.Duration
	log      *slog.Logger
	now      func() time.Time
	mux      *http.ServeMux // what is the dashboard's own
	origins  *http.CrossOriginProtection
}

//go:embed assets
var assets embed.FS

// New returns a dashboard.
func New(o Options) *Dashboard {
	d := &Dashboard{api: o.API, journal: o.Journal, patience: o.Patience, log: o.Log, now: o.Now, mux: http.NewServeMux(), origins: http.NewCrossOriginProtection()}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	if d.now == nil {
		d.now = time.Now
	}
	if d.patience == 0 {
		d.patience = 40 * time.Millisecond
	}
	d.sessions = sessions{store: o.Store, tokens: o.Tokens, now: d.now}
	d.attempts = attempts{store: o.Store, now: d.now}
	d.proxies = o.Proxies
	d.masks = newMasks(o.Mask)
	d.origins.SetDenyHandler(http.HandlerFunc(d.foreign))
	for pattern, serve := range d.routes() {
		d.mux.HandleFunc(pattern, serve)
	}
	return d
}

// routes are all that the dashboard serves, by the mux's patterns.
func (d *Dashboard) routes() map[string]http.HandlerFunc {
	all := map[string]http.HandlerFunc{
		"GET /login":         d.showSignIn,
		"POST /login":        d.signIn,
		"POST /logout":       d.signOut,
		"GET /assets/{file}": d.asset,
		"GET /live":          d.guard(d.live),
		"GET /act":           d.guard(d.confirm),
		"POST /act":          d.guard(d.act),
		"POST /definitions":  d.guard(d.plan),
		"GET /many":          d.guard(d.confirmMany),
		"POST /many":         d.guard(d.beginMany),
	}
	for _, p := range pages {
		all["GET "+p.path] = d.guard(func(w http.ResponseWriter, r *http.Request) { d.show(w, r, p) })
	}
	return all
}

// ServeHTTP serves a page, or passes the request to the API. A browser gets pages also of paths that neither has.
func (d *Dashboard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if api.Guarded(r.URL.Path) {
		d.api.ServeHTTP(w, r)
		return
	}
	r = d.joined(r)
	methods := d.methods(r)
	if methods == nil && (!isBrowser(r) || d.api.Has(r)) {
		d.api.ServeHTTP(w, r)
		return
	}
	api.PageHeaders(w.Header())
	switch {
	case methods == nil:
		d.unknown(w, r)
	case slices.Contains(methods, r.Method):
		d.origins.Handler(d.mux).ServeHTTP(w, r)
	default:
		d.elsewise(w, r, methods)
	}
}

// unknown says that there is no such page.
func (d *Dashboard) unknown(w http.ResponseWriter, r *http.Request) {
	d.fail(w, r, refuse(api.CodeNotFound, "There is nothing at this path."))
}

// elsewise responds to a method that the path does not have: to OPTIONS with those it has, to others with a 405.
func (d *Dashboard) elsewise(w http.ResponseWriter, r *http.Request, methods []string) {
	allow := strings.Join(append(methods, http.MethodOptions), ", ")
	w.Header().Set("Allow", allow)
	if r.Method == http.MethodOptions {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	d.fail(w, r, refuse(api.CodeMethod, "The method "+r.Method+" is not offered here, but "+allow+"."))
}

// asset serves a file that pages load, which the browser may keep.
func (d *Dashboard) asset(w http.ResponseWriter, r *http.Request) {
	name := "assets/" + r.PathValue("file")
	if file, err := fs.Stat(assets, name); err != nil || file.IsDir() {
		d.unknown(w, r)
		return
	}
	w.Header().Set("Cache-Control", "public, max-age=3600")
	http.ServeFileFS(w, r, assets, name)
}

// foreign refuses what a page of another site makes a browser send.
func (d *Dashboard) foreign(w http.ResponseWriter, r *http.Request) {
	d.fail(w, r, refuse(api.CodeForbidden, "This comes from another site, so nothing was done. Do it from the dashboard's own page."))
}

// methods are those that a path of the dashboard's own has, nil for any other path.
func (d *Dashboard) methods(r *http.Request) (all []string) {
	probe := *r
	for _, probe.Method = range []string{http.MethodGet, http.MethodHead, http.MethodPost} {
		if _, pattern := d.mux.Handler(&probe); pattern != "" {
			all = append(all, probe.Method)
		}
	}
	return all
}

// has reports whether a request's path is the dashboard's own.
func (d *Dashboard) has(r *http.Request) bool { return d.methods(r) != nil }

// guard returns a handler that serves whoever is signed in. A browser that is not is led to sign in; anything else gets a 401.
func (d *Dashboard) guard(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		token, err := d.sessions.of(r)
		switch {
		case err != nil:
			d.fail(w, r, err)
		case token != nil:
			ctx := context.WithValue(r.Context(), tokenKey{}, token)
			serve(w, r.WithContext(api.As(ctx, token)))
		case !isBrowser(r):
			w.Header().Set("WWW-Authenticate", "Bearer") // a browser's script asks too, and for Basic the browser would ask the person
			d.fail(w, r, refuse(api.CodeUnauthorized, "sign in at /login; the API takes tokens"))
		case r.Method == http.MethodGet, r.Method == http.MethodHead:
			redirect(w, r, "/login?next="+url.QueryEscape(r.URL.RequestURI()))
		default:
			redirect(w, r, "/login")
		}
	}
}

// tokenKey is where the context of a guarded request holds the token of its session.
type tokenKey struct{}

func tokenOf(r *http.Request) *access.Token {
	token, _ := r.Context().Value(tokenKey{}).(*access.Token)
	return token
}

// isBrowser reports whether a person's browser asks: it names HTML among what it accepts.
func isBrowser(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept"), "text/html") }
