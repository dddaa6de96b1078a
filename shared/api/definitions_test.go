package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store/memory"
)

const definitionsPath = "/api/v1/definitions"

// defining is an API over a catalog of its own.
func defining(t *testing.T, change ...func(*api.Options)) (*bundle, *definition.Catalog) {
	t.Helper()
	s := memory.New(memory.Options{})
	j := journal.Open(s, journal.Options{Folds: projection.Folds()})
	t.Cleanup(func() { _ = j.Close() })
	catalog := definition.OpenCatalog(definition.CatalogOptions{Store: s, Journal: j})
	b := setup(t)
	options := api.Options{Tokens: tokens(), Log: b.log()}
	for _, c := range change {
		c(&options)
	}
	b.api = api.New(options, api.Define(catalog))
	return b, catalog
}

func TestPutDefinitions(t *testing.T) {
	t.Parallel()
	b, _ := defining(t)
	for _, step := range []struct{ kind, target, body, want string }{
		{"application/yaml", "?dry_run=true", "jobs:\n- path: /a\n", `{"added":["Job:/a"],"replaced":[],"removed":[]}`},
		{"application/yaml; charset=utf-8", "", "jobs:\n- path: /a\n", `{"added":["Job:/a"],"replaced":[],"removed":[]}`},
		{"text/yaml", "?dry_run=false", "jobs: [{path: /a, timeout: 90}]", `{"added":[],"replaced":["Job:/a"],"removed":[]}`},
		{"application/json", "", `{"jobs":[{"path":"/a","timeout":"1m30s"}],"lease":5}`, `{"added":[],"replaced":[],"removed":[]}`},
	} {
		got := b.as(t, access.Admin, "PUT", definitionsPath+step.target, step.body, "Content-Type", step.kind)
		if got.StatusCode != http.StatusOK || got.body != step.want {
			t.Errorf("PUT %s = %d %s, want %s", step.body, got.StatusCode, got.body, step.want)
		}
	}
	over := b.as(t, access.Admin, "PUT", definitionsPath+"?dry_run=true", `{"schedules":[{"name":"s","cron":"@daily","job":"/topics/a"},`+
		`{"name":"t","cron":"0 0 12 1 1 ? 2020","job":"/topics/a"}]}`)
	if want := `"warnings":["schedule t: it never fires again: its last time was 2020-01-01T12:00:00Z"]`; !strings.Contains(over.body, want) {
		t.Errorf("PUT of a schedule that is over = %d %s, want %s", over.StatusCode, over.body, want)
	}
	shown := b.as(t, access.Viewer, "GET", definitionsPath, "")
	if want := `{"jobs":[{"path":"/a","timeout":"1m30s"}],"lease":"5s"}`; shown.StatusCode != http.StatusOK || shown.body != want {
		t.Errorf("GET = %d %s, want %s", shown.StatusCode, shown.body, want)
	}
	again := b.as(t, access.Admin, "PUT", definitionsPath, shown.body)
	if again.body != `{"added":[],"replaced":[],"removed":[]}` {
		t.Errorf("PUT of what GET shows = %s, want no change", again.body)
	}
}

func TestPutDefinitionsRefuses(t *testing.T) {
	t.Parallel()
	b, catalog := defining(t)
	for _, tt := range []struct {
		name, kind, target, body string
		status                   int
		errors                   []string // locations and messages
	}{
		{"mistakes", "application/yaml", "", "jobs:\n- {path: a}\n- {attempts: 0}\nfoo: 1", 400, []string{
			"body.jobs[0].path line 2: a path begins with /", "body.jobs[1].attempts line 3: want at least 1, or -1 for no end",
			"body.jobs[1].path line 3: is missing",
			"body.foo line 4: unknown, want one of dashboard, drain, file_orders, handlers, history, job_chains, jobs, journal, lease, locks, metrics, queues, schedules, sources, targets, tokens"}},
		{"nothing", "application/yaml", "", "", 400, []string{"body line 1: nothing is said; {} would declare nothing"}},
		{"tokens", "application/json", "", `{"tokens":[]}`, 422, []string{"body.tokens line 1: this section is for the server's own file"}},
		{"file orders", "application/yaml", "", "file_orders: [{chain: /c, directory: in}]", 422,
			[]string{"body.file_orders line 1: this section is for the server's own file"}},
		{"a chain", "application/yaml", "", "job_chains:\n- path: /c\n  nodes:\n  - {id: a, job: /j, next: b}\n  - {id: c}\n  - {id: d, prompt: {role: boss, answers: {yes: d}}}", 400, []string{
			`body.job_chains[0].nodes[0].next line 4: the chain has no node "b"`,
			"body.job_chains[0].nodes[1] line 5: no way leads to the node c",
			`body.job_chains[0].nodes[2].prompt.role line 6: "boss" is none of viewer, producer, consumer, worker, operator, admin`,
			"body.job_chains[0].nodes[2] line 6: no way leads to the node d",
			"body.job_chains[0].nodes[2] line 6: no way leads to an end from the loop of d"}},
		{"a command", "application/json", "?dry_run=true", `{"jobs":[{"path":"/a","target":{"command":["ls"]}}]}`, 422,
			[]string{"body.jobs[0].target.command new commands are for the server's own file"}},
		{"zones of the host", "application/yaml", "", "sources: {s: {target: {go: f}, collections: [{name: c, schedule: '@daily', timezone: localtime}]}}\n" +
			"schedules: [{name: s, cron: '@daily', job: /topics/a, timezone: posix/UTC}]", 400, []string{
			`body.sources.s.collections[0].timezone line 1: time zone "localtime": want a name of the IANA database, as Europe/Berlin`,
			`body.schedules[0].timezone line 2: time zone "posix/UTC": want a name of the IANA database, as Europe/Berlin`}},
		{"dry run", "application/json", "?dry_run=yes", `{}`, 400, []string{"query.dry_run want true or false"}},
		{"media type", "text/plain", "", `{}`, 415, []string{"header.Content-Type want application/yaml or application/json in UTF-8"}},
		{"a payload's size", "application/json", "", `{"schedules":[{"name":"s","cron":"@daily","job":"/topics/a","payload":"` + strings.Repeat("a", 256<<10) + `"}]}`, 413,
			[]string{"body.schedules[0].payload line 1: more than 262144 bytes"}},
		{"size", "application/json", "", `{"a":"` + strings.Repeat("a", 1<<20) + `"}`, 413, []string{"body more than 1048576 bytes"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := b.as(t, access.Admin, "PUT", definitionsPath+tt.target, tt.body, "Content-Type", tt.kind)
			var p api.Problem
			if err := json.Unmarshal([]byte(got.body), &p); err != nil || got.StatusCode != tt.status {
				t.Fatalf("PUT = %d %s, want %d", got.StatusCode, got.body, tt.status)
			}
			var found []string
			for _, e := range p.Errors {
				found = append(found, e.Location+" "+e.Message)
			}
			if diff := cmp.Diff(tt.errors, found); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
	if set, err := catalog.Refresh(t.Context()); err != nil || !set.Equal(new(definition.Set)) {
		t.Errorf("something was applied: %s, %v", set.JSON(), err)
	}
}

// Where workers may not run for ever, as on Lambda, timeouts that they cannot keep are said when they are declared; instances can keep them.
func TestPutTimeoutsThatNoWorkerCanKeep(t *testing.T) {
	t.Parallel()
	const set = `{"jobs":[{"path":"/a","target":{"http":{"url":"https://a.example"}},"timeout":"15m"},{"path":"/b","target":{"go":"f"},"timeout":"16m"},` +
		`{"path":"/c","target":{"instances":true},"timeout":"2h"}],` +
		`"handlers":[{"canvas":"c","space":"WORKER","name":"n","target":{"http":{"url":"https://a.example"}},"timeout":"1h"}],` +
		`"sources":{"s":{"target":{"http":{"url":"https://a.example"}},"collections":[{"name":"x"}],"timeout":"1d"}}}`
	const ends = ` is longer than the 15m0s that a worker may run here: an attempt ends then, as failed`
	for most, want := range map[time.Duration][]string{
		0: nil,
		15 * time.Minute: {
			"job /b: its timeout of 16m0s" + ends, "handler c/WORKER/n: its timeout of 1h0m0s" + ends, "source s: its timeout of 24h0m0s" + ends,
		},
	} {
		b, _ := defining(t, func(o *api.Options) { o.MaxTask = most })
		got := b.as(t, access.Admin, "PUT", definitionsPath+"?dry_run=true", set)
		var said struct{ Warnings []string }
		if err := json.Unmarshal([]byte(got.body), &said); err != nil || got.StatusCode != http.StatusOK {
			t.Fatalf("PUT = %d %s, %v", got.StatusCode, got.body, err)
		}
		if diff := cmp.Diff(want, said.Warnings); diff != "" {
			t.Errorf("warnings with %v (-want +got):\n%s", most, diff)
		}
	}
}

// A chain is shown as it was declared, and what is likely to be a mistake in it is said.
func TestPutJobChains(t *testing.T) {
	t.Parallel()
	b, _ := defining(t)
	const set = `{"job_chains":[{"path":"/c","max_orders":3,"nodes":[{"id":"a","fork":{"branches":{"x":[{"job":"/j"}]}},"join":"all"},` +
		`{"id":"b","wait":{"event":"Arrived","where":{"n":1,"of":"${id}"},"timeout":"1d"},"error":"d"},{"id":"c"},{"id":"d"}]}],` +
		`"locks":[{"name":"l","max_shared":2}]}`
	put := b.as(t, access.Admin, "PUT", definitionsPath, set)
	want := `{"added":["JobChain:/c","Lock:/l"],"replaced":[],"removed":[],` +
		`"warnings":["job chain /c: no job /j is declared: its steps wait for instances that claim them"]}`
	if put.StatusCode != http.StatusOK || put.body != want {
		t.Errorf("PUT = %d %s, want %s", put.StatusCode, put.body, want)
	}
	shown := b.as(t, access.Viewer, "GET", definitionsPath, "")
	if shown.body != set {
		t.Errorf("GET = %s, want %s", shown.body, set)
	}
}

// What another process has declared a moment ago is found, although this one has not looked since.
func TestWhatWasDeclaredElsewhereIsFound(t *testing.T) {
	t.Parallel()
	s := memory.New(memory.Options{})
	j := journal.Open(s, journal.Options{Folds: projection.Folds()})
	t.Cleanup(func() { _ = j.Close() })
	open := func() *definition.Catalog {
		return definition.OpenCatalog(definition.CatalogOptions{Store: s, Journal: j, Age: time.Hour})
	}
	events, tasks, elsewhere := open(), open(), open()
	for _, here := range []*definition.Catalog{events, tasks} {
		if _, err := here.Current(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	set, err := definition.Read("f", []byte("sources: {crm: {collections: [{name: a}]}}\nhandlers: [{canvas: c, space: s, name: n}]"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := elsewhere.Apply(t.Context(), set, definition.FromAPI); err != nil {
		t.Fatal(err)
	}
	over := func(here *definition.Catalog) *bundle {
		q := queue.Open(queue.Options{Store: s, Journal: j, Definitions: here})
		return &bundle{api: api.New(api.Options{Tokens: tokens()}, api.Enqueue(q, here))}
	}
	got := over(events).as(t, access.Producer, "POST", "/api/v1/canvases/c/handlers/s/n/events", `{"value":1}`)
	if !strings.Contains(got.body, `"status":"new"`) {
		t.Errorf("an event for the handler = %d %s, want it new", got.StatusCode, got.body)
	}
	b := over(tasks)
	if got := b.as(t, access.Producer, "POST", "/api/v1/tasks?source=crm&collection=a", ""); got.StatusCode != http.StatusCreated {
		t.Errorf("a task of the source = %d %s, want 201", got.StatusCode, got.body)
	}
	if got := b.as(t, access.Producer, "POST", "/api/v1/tasks?source=crm&collection=b", ""); got.StatusCode != http.StatusNotFound {
		t.Errorf("a task of no collection = %d %s, want 404", got.StatusCode, got.body)
	}
}

func TestDefinitionsAreForAdmins(t *testing.T) {
	t.Parallel()
	b, _ := defining(t)
	for role, want := range map[access.Role]int{access.Operator: 403, access.Viewer: 403, access.Producer: 403, "": 401} {
		if got := b.as(t, role, "PUT", definitionsPath, "{}"); got.StatusCode != want {
			t.Errorf("PUT as %q = %d, want %d", role, got.StatusCode, want)
		}
	}
	if got := b.as(t, access.Producer, "GET", definitionsPath, ""); got.StatusCode != 403 {
		t.Errorf("GET as a producer = %d, want 403", got.StatusCode)
	}
}
