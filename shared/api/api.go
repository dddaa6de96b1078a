package api

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/access"
)

// Options of an API. The zero value of each field means its default; the zero Options know no token, so that only what
// [Anyone] may do is open.
type Options struct {
	Tokens  []access.Token        // the tokens that are accepted; default: none
	Accept  func() []access.Token // returns those that are accepted now, where they may change; default: Tokens
	Log     *slog.Logger          // default: discards
	Metrics Metrics               // default: none

	// MaxWait is the longest that the host lets a request wait; longer timeouts are cut to it. Default, and at most: 1 h.
	MaxWait time.Duration

	// WaitsCost says that a request which waits costs as much as one that works, as on Lambda: a client that prefers to pause between
	// requests is not made to wait (the header Prefer of RFC 7240, with the preference pause). Default: false.
	WaitsCost bool

	// MaxTask is the longest that the host's workers may run an attempt: definitions with longer timeouts get a warning. Default: no limit.
	MaxTask time.Duration

	// MaxAnswer is about how many bytes of events one response carries; a longer one is cut after an event, and the
	// client goes on from there. Default 4 MiB.
	MaxAnswer int

	// CanStream says that the host passes on what is written as it is written. Where it cannot, a stream is a long
	// poll: what is there, then the end. Default: false.
	CanStream bool

	// Stopping ends when the host is to stop: streams of logs end then. Default: never.
	Stopping context.Context

	// Slow is how long a request that need not wait may take before it is logged as a warning. Default 1 s.
	Slow time.Duration

	// Missing names the projections that this server does not have, such as OrderOverview: a request for one gets a 404.
	// Default: none.
	Missing []string

	// Origins are those whose pages may use the API from a browser (CORS), such as https://app.example. Default: none but its own.
	Origins []string

	// Version is the program's, for the description. Default "dev".
	Version string
}

// API is the handler of every operation that was mounted. It is safe for concurrent use.
type API struct {
	handler http.Handler // of every request
	mux     *http.ServeMux
	routes  []route          // what is mounted
	rights  map[string]Right // what each of them demands, by the mux's patterns
	accept  func() []access.Token
	log     *slog.Logger
	metrics Metrics
	slow    time.Duration

	maxWait   time.Duration
	waitsCost bool
	maxTask   time.Duration
	maxAnswer int
	canStream bool
	missing   []string
	stopping  context.Context
	unready   string // why nothing can be served yet; "": it can

	version     string        // the program's
	description func() []byte // the OpenAPI document, made when it is first asked for
}

// MaxWait is the longest that any request may wait, whatever its host allows (as in JobScheduler's event API).
const MaxWait = time.Hour

// New returns an API of these resources, with its description at /openapi.json and /docs.
func New(o Options, resources ...Resource) *API {
	a := &API{
		mux:       http.NewServeMux(),
		rights:    make(map[string]Right),
		accept:    o.Accept,
		log:       o.Log,
		metrics:   o.Metrics,
		slow:      orElse(o.Slow, time.Second),
		maxWait:   min(orElse(o.MaxWait, MaxWait), MaxWait),
		waitsCost: o.WaitsCost,
		maxTask:   o.MaxTask,
		maxAnswer: orElse(o.MaxAnswer, 4<<20),
		canStream: o.CanStream,
		missing:   o.Missing,
		stopping:  o.Stopping,
		version:   orElse(o.Version, "dev"),
	}
	if a.accept == nil {
		a.accept = func() []access.Token { return o.Tokens }
	}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	if a.stopping == nil {
		a.stopping = context.Background()
	}
	if a.metrics == nil {
		a.metrics = unmeasured{}
	}
	a.description = sync.OnceValue(a.describe)
	for _, resource := range append(resources, documentation{}) {
		for _, r := range resource.routes(a) {
			a.mount(r)
		}
	}
	a.mux.HandleFunc("/", a.elsewhere)
	a.handler = http.HandlerFunc(a.serve)
	if len(o.Origins) > 0 {
		a.handler = shared(o.Origins, a.handler)
	}
	return a
}

func orElse[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}

// ServeHTTP serves one request. Whatever a resource does, the response has a request id, failures are problems, and
// nothing below a guarded path is reached without a token.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.handler.ServeHTTP(w, r) }

func (a *API) serve(w http.ResponseWriter, r *http.Request) {
	x := a.begin(w, r)
	defer x.end()
	if begun, ok := a.begun(r); ok {
		r = begun
	}
	r = cleaned(r)
	if Guarded(r.URL.Path) {
		if err := x.identify(); err != nil {
			x.fail(err)
			return
		}
	}
	if err := a.early(r.URL.Path); err != nil {
		x.fail(err)
		return
	}
	a.mux.ServeHTTP(x, r)
}

// cleaned returns the request with its path free of double slashes and dots. The mux would redirect there, which costs
// a round trip, and fails for clients that do not follow redirects: order//a/ is written easily.
func cleaned(r *http.Request) *http.Request {
	escaped := r.URL.EscapedPath()
	if !strings.Contains(escaped, "//") && !strings.Contains(escaped, "/.") {
		return r
	}
	clean := path.Clean(escaped)
	if strings.HasSuffix(escaped, "/") && clean != "/" {
		clean += "/"
	}
	if moved, err := at(r, clean); err == nil {
		return moved
	}
	return r
}

// at returns the request with another path, which is escaped.
func at(r *http.Request, escaped string) (*http.Request, error) {
	unescaped, err := url.PathUnescape(escaped)
	if err != nil {
		return nil, err
	}
	r = r.WithContext(r.Context())
	u := *r.URL
	u.Path, u.RawPath = unescaped, escaped
	r.URL = &u
	return r, nil
}
