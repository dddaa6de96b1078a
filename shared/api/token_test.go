package api_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/api"
)

func TestTokenWays(t *testing.T) {
	t.Parallel()
	const target = base + "/event?after=0"
	cases := map[string]struct {
		method, target string
		set            func(*http.Request)
		want           int
	}{
		"bearer":                    {"GET", target, header("Authorization", "Bearer viewer-secret"), 200},
		"bearer in any case":        {"GET", target, header("Authorization", "bEARER viewer-secret"), 200},
		"admin header":              {"GET", target, header("X-Admin-Token", "viewer-secret"), 200},
		"basic":                     {"GET", target, func(r *http.Request) { r.SetBasicAuth("anyone", "viewer-secret") }, 200},
		"query":                     {"GET", target + "&token=viewer-secret", nil, 200},
		"query of a POST":           {"POST", base + "/order?return=OrderOverview&token=viewer-secret", nil, 401},
		"none":                      {"GET", target, nil, 401},
		"wrong":                     {"GET", target, header("Authorization", "Bearer viewer-secre"), 401},
		"empty":                     {"GET", target, header("Authorization", "Bearer "), 401},
		"unknown scheme":            {"GET", target, header("Authorization", "Digest viewer-secret"), 401},
		"the first that is there":   {"GET", target + "&token=viewer-secret", header("Authorization", "Bearer wrong"), 401},
		"its hash is not the token": {"GET", target, header("Authorization", "Bearer "+hashOf("viewer-secret")), 401},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			r := httptest.NewRequest(c.method, c.target, strings.NewReader("{}"))
			if c.set != nil {
				c.set(r)
			}
			got := b.do(t, r)
			if got.StatusCode != c.want {
				t.Fatalf("status = %d, want %d: %s", got.StatusCode, c.want, got.body)
			}
			if c.want == http.StatusUnauthorized {
				wantProblem(t, got, 401, api.CodeUnauthorized)
				if got.Header.Get("WWW-Authenticate") == "" {
					t.Error("a 401 without WWW-Authenticate")
				}
			}
			if strings.Contains(b.logs.String(), "secret") {
				t.Errorf("the log holds the token: %s", b.logs)
			}
		})
	}
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

// Nothing is looked up before the token is known: unknown paths and wrong methods look alike.
func TestTokenBeforeAnything(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, path := range []string{
		"/api", "/api/", "/api/v1/tasks", "/api/v1/nowhere", "/jobscheduler", "/jobscheduler/master/api/event", "/tasks", "/tasks/1",
		"/jobscheduler/master/api/order/a/../b", "//api/v1", "/x/../api/v1", "/jobscheduler/%2e%2e/x",
	} {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"} {
			if got := b.as(t, "", method, path, ""); got.StatusCode != http.StatusUnauthorized {
				t.Errorf("%s %s without a token = %d, want 401", method, path, got.StatusCode)
			}
		}
	}
}

func TestOpenPaths(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for path, want := range map[string]int{
		"/healthz": 200, "/readyz": 200, "/openapi.json": 200, "/docs": 200, "/docs/style.css": 200, "/docs/reference.js": 200,
		"/nowhere": 404, "/metrics": 404, "/apis": 404, "/": 404,
	} {
		if got := b.as(t, "", "GET", path, ""); got.StatusCode != want {
			t.Errorf("GET %s without a token = %d, want %d", path, got.StatusCode, want)
		}
	}
}

func TestRoles(t *testing.T) {
	t.Parallel()
	b := setup(t)
	calls := map[string]func(access.Role) reply{
		"emit":     func(r access.Role) reply { return b.as(t, r, "POST", base+"/event", `[{"TYPE":"A"}]`) },
		"events":   func(r access.Role) reply { return b.as(t, r, "GET", base+"/event?after=0", "") },
		"snapshot": func(r access.Role) reply { return b.as(t, r, "GET", base+"/object/?return=ObjectOverview", "") },
		"search":   func(r access.Role) reply { return b.as(t, r, "POST", base+"/object?return=ObjectOverview", "{}") },
	}
	want := map[string]map[access.Role]int{
		"emit":     {"viewer": 403, "producer": 201, "consumer": 403, "worker": 403, "operator": 201, "admin": 201},
		"events":   {"viewer": 200, "producer": 403, "consumer": 403, "worker": 403, "operator": 200, "admin": 200},
		"snapshot": {"viewer": 200, "producer": 403, "consumer": 403, "worker": 403, "operator": 200, "admin": 200},
		"search":   {"viewer": 200, "producer": 403, "consumer": 403, "worker": 403, "operator": 200, "admin": 200},
	}
	got := map[string]map[access.Role]int{}
	for name, call := range calls {
		got[name] = map[access.Role]int{}
		for role := range want[name] {
			answer := call(role)
			got[name][role] = answer.StatusCode
			if answer.StatusCode == http.StatusForbidden {
				wantProblem(t, answer, 403, api.CodeForbidden)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The table of rights.
func TestRights(t *testing.T) {
	t.Parallel()
	want := map[access.Role][]api.Right{
		access.Viewer:   {api.Anyone, api.Read, api.ReadTask, api.ReadStream, api.ReadInstance, api.Respond},
		access.Producer: {api.Anyone, api.ReadTask, api.Produce, api.Respond},
		access.Consumer: {api.Anyone, api.ReadStream, api.Consume, api.Respond},
		access.Worker:   {api.Anyone, api.ReadInstance, api.Work, api.Respond},
		access.Operator: {api.Anyone, api.Read, api.ReadTask, api.ReadStream, api.ReadInstance, api.Produce, api.Consume, api.Work, api.Respond, api.Operate},
		access.Admin: {api.Anyone, api.Read, api.ReadTask, api.ReadStream, api.ReadInstance, api.Produce, api.Consume, api.Work, api.Respond, api.Operate,
			api.Administer},
		"": {api.Anyone},
	}
	got := map[access.Role][]api.Right{}
	for role := range want {
		for right := api.Anyone; right <= api.Administer; right++ {
			if right.GrantedTo(role) {
				got[role] = append(got[role], right)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
