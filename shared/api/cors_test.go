package api_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/api"
)

const page = "https://app.example"

func ofOrigins(o *api.Options) { o.Origins = []string{page, "http://localhost:3000"} }

// granted returns what a response tells browsers of other origins, and which caches must know of.
func granted(r reply) map[string]string {
	told := map[string]string{}
	for name, values := range r.Header {
		if strings.HasPrefix(name, "Access-Control-") || name == "Vary" {
			told[name] = strings.Join(values, ", ")
		}
	}
	return told
}

// TestPagesOfOtherOrigins: a preflight needs no token, what follows it does; only origins that are named are told that they may.
func TestPagesOfOtherOrigins(t *testing.T) {
	t.Parallel()
	b := setup(t, ofOrigins)
	const exposed = "Allow, Idempotent-Replayed, Last-Event-Id, Link, Location, Preference-Applied, Retry-After, Www-Authenticate, X-Request-Id"
	const varied = "Origin, Access-Control-Request-Method, Access-Control-Request-Headers"
	event := []string{"POST", base + "/event", `[{"TYPE":"Said","key":"/a"}]`}
	preflight := []string{"OPTIONS", base + "/event", ""}
	asks := []string{"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization,content-type,idempotency-key"}
	for name, test := range map[string]struct {
		role    access.Role
		request []string
		headers []string
		status  int
		want    map[string]string
	}{
		"a preflight": {"", preflight, append(asks, "Origin", page), 204, map[string]string{
			"Access-Control-Allow-Origin": page, "Access-Control-Allow-Methods": "POST", "Access-Control-Max-Age": "7200",
			"Access-Control-Allow-Headers": "authorization,content-type,idempotency-key", "Vary": varied,
		}},
		"a preflight of a stranger": {"", preflight, append(asks, "Origin", page+".evil.example"), 204, map[string]string{"Vary": varied}},
		"a preflight for a header that means nothing": {"", preflight, []string{
			"Origin", page, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "x-evil",
		}, 204, map[string]string{"Vary": varied}},
		"a request":               {access.Producer, event, []string{"Origin", page}, 201, map[string]string{"Access-Control-Allow-Origin": page, "Access-Control-Expose-Headers": exposed, "Vary": "Origin"}},
		"of the second origin":    {access.Producer, event, []string{"Origin", "http://localhost:3000"}, 201, map[string]string{"Access-Control-Allow-Origin": "http://localhost:3000", "Access-Control-Expose-Headers": exposed, "Vary": "Origin"}},
		"a request without token": {"", event, []string{"Origin", page}, 401, map[string]string{"Access-Control-Allow-Origin": page, "Access-Control-Expose-Headers": exposed, "Vary": "Origin"}},
		"a request of a stranger": {access.Producer, event, []string{"Origin", "https://evil.example"}, 201, map[string]string{"Vary": "Origin"}},
		"a request of no page":    {access.Producer, event, nil, 201, map[string]string{"Vary": "Origin"}},
		"OPTIONS of no browser":   {"", preflight, nil, 401, map[string]string{"Vary": "Origin"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := b.as(t, test.role, test.request[0], test.request[1], test.request[2], test.headers...)
			if r.StatusCode != test.status {
				t.Errorf("status %d %s, want %d", r.StatusCode, r.body, test.status)
			}
			if diff := cmp.Diff(test.want, granted(r)); diff != "" {
				t.Errorf("headers (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNoOriginsNoCORS: without origins nothing is said of them at all.
func TestNoOriginsNoCORS(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, r := range []reply{
		b.as(t, "", "OPTIONS", base+"/event", "", "Origin", page, "Access-Control-Request-Method", "POST"),
		b.as(t, access.Viewer, "GET", base+"/event?after=0", "", "Origin", page),
	} {
		if told := granted(r); len(told) > 0 {
			t.Errorf("%d told %v", r.StatusCode, told)
		}
	}
}

// TestBrowsersMaySendEveryHeader: whatever header and method the description names passes a preflight.
func TestBrowsersMaySendEveryHeader(t *testing.T) {
	t.Parallel()
	b := setup(t, ofOrigins)
	all, _ := everything(t)
	names, methods := map[string]bool{}, map[string]bool{}
	for _, operations := range all.Paths {
		for method, o := range operations {
			methods[strings.ToUpper(method)] = true
			for _, p := range o.Parameters {
				if p.In == "header" {
					names[strings.ToLower(p.Name)] = true
				}
			}
		}
	}
	if len(names) == 0 || len(methods) < 2 {
		t.Fatalf("the description names the headers %v and the methods %v", names, methods)
	}
	headers := strings.Join(slices.Sorted(maps.Keys(names)), ",")
	for method := range methods {
		r := b.as(t, "", http.MethodOptions, base+"/event", "", "Origin", page, "Access-Control-Request-Method", method, "Access-Control-Request-Headers", headers)
		if r.Header.Get("Access-Control-Allow-Origin") != page {
			t.Errorf("%s with %s does not pass", method, headers)
		}
	}
}
