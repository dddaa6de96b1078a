package api_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/event"
)

type document struct {
	OpenAPI    string
	Tags       []struct{ Name, Description string }
	Paths      map[string]map[string]operation
	Components struct{ Schemas map[string]any }
}

type operation struct {
	OperationID string
	Summary     string
	Tags        []string
	Security    []map[string][]string
	Parameters  []parameter
	RequestBody any
	Responses   map[string]struct {
		Content map[string]any
		Headers map[string]any
	}
}

type parameter struct {
	Name, In string
	Required bool
	Schema   schema
}

type schema struct {
	Pattern  string
	OneOf    []schema
	AnyOf    []schema
	Items    *schema
	Enum     []string
	MaxItems int

	MaxLength int
}

// patterns joins those of which one must match.
func (s schema) patterns() string {
	var all []string
	for _, one := range s.AnyOf {
		all = append(all, one.Pattern)
	}
	return strings.Join(all, "|")
}

func description(t *testing.T, b *bundle) (document, string) {
	t.Helper()
	got := b.as(t, "", "GET", "/openapi.json", "")
	var doc document
	if err := json.Unmarshal([]byte(got.body), &doc); err != nil || got.StatusCode != 200 {
		t.Fatalf("openapi.json = %d: %v", got.StatusCode, err)
	}
	return doc, got.body
}

func TestOpenAPI(t *testing.T) {
	t.Parallel()
	doc, _ := description(t, setup(t))
	if !strings.HasPrefix(doc.OpenAPI, "3.1") {
		t.Errorf("openapi = %s, want 3.1", doc.OpenAPI)
	}
	want := []string{"/healthz", "/readyz", eventPath, base + "/journal/cause/{eventId}"}
	for _, kind := range []string{"order", "job", "jobChain", "task", "fileBased", "object"} {
		want = append(want, base+"/"+kind, base+"/"+kind+"/{path}")
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(doc.Paths))); diff != "" {
		t.Error(diff)
	}
}

// everything is the description of an API that has all operations.
func everything(t *testing.T) (document, string) {
	t.Helper()
	return description(t, &bundle{api: everyAPI(api.Options{})})
}

// everyAPI has every operation, and nothing behind them.
func everyAPI(o api.Options) *api.API {
	return api.New(o,
		api.Emit(nil), api.Events(nil), api.Objects(nil), api.Enqueue(nil, nil), api.Tasks(nil, nil), api.Handlers(nil, nil),
		api.Jobs(nil, nil), api.Queues(nil, nil), api.Define(nil), api.Append(nil), api.Streams(nil), api.Acknowledge(nil),
		api.Instances(nil, nil), api.Exchange(nil), api.Schedules(nil, nil, nil), api.Orders(nil), api.Acts(nil), api.Cron(), api.Operations(api.Probes{Metrics: http.NotFoundHandler()}))
}

// Every operation has an id of its own, a tag, a description of each parameter of its path, of who may call it, and of what its
// failures look like.
func TestOpenAPIOperations(t *testing.T) {
	t.Parallel()
	doc, _ := everything(t)
	ids := map[string]bool{}
	for path, item := range doc.Paths {
		for method, op := range item {
			where := method + " " + path
			if op.OperationID == "" || ids[op.OperationID] || len(op.Tags) != 1 || op.Summary == "" {
				t.Errorf("%s: operationId %q, tags %v, summary %q", where, op.OperationID, op.Tags, op.Summary)
			}
			ids[op.OperationID] = true
			if open := path == "/healthz" || path == "/readyz"; open != (len(op.Security) == 0) {
				t.Errorf("%s: security %v", where, op.Security)
			}
			for _, found := range regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(path, -1) {
				if !slices.ContainsFunc(op.Parameters, func(p parameter) bool { return p.Name == found[1] && p.In == "path" && p.Required }) {
					t.Errorf("%s: {%s} is not described", where, found[1])
				}
			}
			goesOn := slices.ContainsFunc(op.Parameters, func(p parameter) bool { return p.Name == "Last-Event-ID" && p.In == "header" && !p.Required })
			if streams := op.Responses["200"].Content["text/event-stream"] != nil; streams != goesOn {
				t.Errorf("%s: streams: %t, Last-Event-ID is described: %t", where, streams, goesOn)
			}
			keyed := slices.ContainsFunc(op.Parameters, func(p parameter) bool { return p.Name == "Idempotency-Key" })
			for status, r := range op.Responses {
				if replays := r.Headers["Idempotent-Replayed"] != nil; replays != (keyed && strings.HasPrefix(status, "2")) {
					t.Errorf("%s: %s: Idempotent-Replayed is described: %v", where, status, replays)
				}
			}
			for _, status := range op.failures(method, path) {
				if op.Responses[status].Content["application/problem+json"] == nil {
					t.Errorf("%s: no problem for %s", where, status)
				}
			}
		}
	}
}

// failures are those that an operation at the path must describe.
func (op operation) failures(method, path string) []string {
	want := []string{"500"}
	if path != "/healthz" && path != "/readyz" {
		want = append(want, "401", "403", "503")
	}
	if method == "post" || method == "put" {
		want = append(want, "400", "413", "415")
	}
	if slices.ContainsFunc(op.Parameters, func(p parameter) bool { return p.Name == "Idempotency-Key" }) {
		want = append(want, "400", "409", "422")
	}
	return want
}

// Each schema that the description refers to is in it, and each that is in it is referred to; so it is with tags, which have a
// description.
func TestOpenAPIHasWhatItUses(t *testing.T) {
	t.Parallel()
	doc, text := everything(t)
	used := map[string]bool{}
	for _, found := range regexp.MustCompile(`"#/components/schemas/([^"]+)"`).FindAllStringSubmatch(text, -1) {
		used[found[1]] = true
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(used)), slices.Sorted(maps.Keys(doc.Components.Schemas))); diff != "" {
		t.Errorf("schemas (-used +there)\n%s", diff)
	}
	declared, tagged := map[string]bool{}, map[string]bool{}
	for _, tag := range doc.Tags {
		declared[tag.Name] = tag.Description != ""
	}
	for _, item := range doc.Paths {
		for _, op := range item {
			tagged[op.Tags[0]] = true
		}
	}
	if diff := cmp.Diff(tagged, declared); diff != "" {
		t.Errorf("tags (-used +declared)\n%s", diff)
	}
}

// The patterns of parameters match exactly what the operations accept.
func TestOpenAPIPatterns(t *testing.T) {
	t.Parallel()
	b := setup(t)
	doc, _ := description(t, b)
	pattern := func(path, method, name string) *regexp.Regexp {
		for _, p := range doc.Paths[path][method].Parameters {
			if p.Name == name {
				return regexp.MustCompile(p.Schema.patterns())
			}
		}
		t.Fatalf("%s has no %s", path, name)
		return nil
	}
	check := func(what string, p *regexp.Regexp, value, target string) {
		taken := b.as(t, access.Viewer, "GET", target, "").StatusCode == 200
		if p.MatchString(value) != taken {
			t.Errorf("%s %q: matched %v, taken %v", what, value, p.MatchString(value), taken)
		}
	}
	timeouts := pattern(eventPath, "get", "timeout")
	b.emit(t, three)
	for _, d := range []string{"0", "60", "111.5", "60s", "200ms", "5m", "1h2m3s", "7d", "1d2ms", "1.5h", "2h30s", "PT1M", "P1D", "PT0.123S", "P2W", "P1DT2H",
		".1", "1y", "s", "1m1h", "-1", "PT", "P", "", "1s2s", "P1Y", "1.", "abc"} {
		check("timeout", timeouts, d, eventPath+"?after=0&timeout="+d)
	}
	folder := pattern(base+"/order/{path}", "get", "path")
	for _, p := range []string{"a", "a/", "a/*", "*", "a/b/c,1", "/a/", "a|b/", "a|/b/*", "a/*/b", "a|", "|a", "a**", "ä b"} {
		check("path", folder, p, base+"/order/"+url.PathEscape(p)+"?return=OrderOverview")
	}
}

// The values that the description offers for the parameter return are those that are accepted.
func TestOpenAPIReturns(t *testing.T) {
	t.Parallel()
	b := setup(t)
	doc, _ := description(t, b)
	names := []string{"Event", "CustomEvent", "OrderOverview", "TaskOverview", "ObjectOverview", "OrderStatisticsChanged", "Foo", "a.b:c_d-1",
		"1st", "a b", "OrderEvent,OrderAdded", "TaskEvent,Event", "A,B", "OrderOverview,Event", "A,OrderStatisticsChanged"}
	for _, family := range event.Families() {
		names = append(append(names, string(family)), event.TypesOf(family)...)
	}
	for _, path := range []string{eventPath, base + "/order/{path}", base + "/task/{path}", base + "/object/{path}"} {
		p := doc.Paths[path]["get"].Parameters
		asked := p[slices.IndexFunc(p, func(p parameter) bool { return p.Name == "return" })]
		for _, name := range names {
			target := strings.Replace(path, "{path}", "a", 1) + "?after=0&return=" + url.QueryEscape(name)
			got := b.as(t, access.Viewer, "GET", target, "")
			if offered := asked.Schema.offers(strings.Split(name, ",")); offered != (got.StatusCode == 200) {
				t.Errorf("GET %s = %d, offered %v", target, got.StatusCode, offered)
			}
		}
	}
}

// offers reports whether one of the lists takes all names.
func (s schema) offers(names []string) bool {
	return slices.ContainsFunc(s.OneOf, func(list schema) bool {
		refused := func(name string) bool { return !list.Items.offersOne(name) }
		return (list.MaxItems == 0 || len(names) <= list.MaxItems) && !slices.ContainsFunc(names, refused)
	})
}

// offersOne matches a name. Custom names are looked at apart, as Go's expressions have no lookahead.
func (s schema) offersOne(name string) bool {
	if s.Pattern == "" {
		return slices.Contains(s.Enum, name)
	}
	fixed := regexp.MustCompile(`\|\(\?![^)]*\)[^|)]*`).ReplaceAllString(s.Pattern, "")
	custom := regexp.MustCompile(`\(\?![^)]*\)`).ReplaceAllString(s.Pattern, "")
	builtIn := regexp.MustCompile(`^(Order|Job|Task|FileBased|Scheduler|Stream|ObjectOverview)`)
	return regexp.MustCompile(fixed).MatchString(name) || regexp.MustCompile(custom).MatchString(name) && !builtIn.MatchString(name)
}

func TestDocsLoadNothingFromElsewhere(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, path := range []string{"/docs", "/docs/style.css", "/docs/reference.js"} {
		got := b.as(t, "", "GET", path, "")
		if strings.Contains(got.body, "://") {
			t.Errorf("%s could load from elsewhere", path)
		}
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
			"X-Content-Type-Options":  "nosniff", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer",
		} {
			if got.Header.Get(name) != want {
				t.Errorf("GET %s: %s: %s", path, name, got.Header.Get(name))
			}
		}
	}
}

// A small function mounts what it needs; its description says no more.
func TestMountedInPart(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.api = api.New(api.Options{Tokens: tokens()}, api.Emit(b.journal))
	doc, _ := description(t, b)
	if len(doc.Paths) != 1 || len(doc.Tags) != 1 || doc.Components.Schemas["Job"] != nil {
		t.Errorf("paths %v, tags %v, want those mounted", slices.Collect(maps.Keys(doc.Paths)), doc.Tags)
	}
	wantProblem(t, b.as(t, access.Admin, "GET", eventPath+"?after=0", ""), 405, api.CodeMethod)
	wantProblem(t, b.as(t, access.Admin, "GET", base+"/order/", ""), 404, api.CodeNotFound)
}
