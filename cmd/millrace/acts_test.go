package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/act"
	"github.com/millrace/millrace/shared/config"
)

// noActs are the operations that change something and are no acts, and why.
var noActs = map[string]string{
	"POST /api/v1/jobs:batch":  "what the act job.add does, for programs",
	"POST /api/v1/tasks:batch": "what the act task.enqueue does, for programs",
	"POST /tasks":              "the act task.enqueue at another path",
	"POST /tasks:batch":        "the act task.enqueue at another path",
	"POST /tasks/{id}/cancel":  "the act task.cancel at another path",
	"POST /api/v1/canvases/{canvas}/handlers/{space}/{name}/events:batch": "what the act handler.emit does, for programs",
	"POST /api/v1/jobs/search":                   "reads",
	"PUT /api/v1/queues/{name}":                  "a part of the act definitions.apply",
	"DELETE /api/v1/queues/{name}":               "a part of the act definitions.apply",
	"PUT /api/v1/schedules/{name}":               "a part of the act definitions.apply",
	"DELETE /api/v1/schedules/{name}":            "a part of the act definitions.apply",
	"POST /api/v1/streams/{stream}/events":       "for the stream's one producer",
	"POST /api/v1/streams/{stream}/events:batch": "for the stream's one producer",
	"POST /api/v1/streams/{stream}/events/{id}":  "for the consumer, which has processed the event",
	"POST /api/v1/instances":                     "for instances",
	"PUT /api/v1/instances/{id}":                 "for instances",
	"DELETE /api/v1/instances/{id}":              "for instances",
	"POST /api/v1/instances/{id}/claims":         "for instances",
	"POST /api/v1/instances/{id}/exchange":       "for instances",
	"POST /api/v1/leases/{token}/heartbeat":      "for instances",
	"POST /api/v1/leases/{token}/complete":       "for instances",
}

// overviews are the operations by which snapshots and events are read with a path query in the body.
var overviews = regexp.MustCompile(`^POST /jobscheduler/master/api/(order|job|jobChain|task|fileBased|object|scheduler|stream)$`)

// whole returns all of Millrace, on a fresh store.
func whole(t *testing.T) *node {
	t.Helper()
	tokens := []access.Token{access.NewToken("admin", access.Admin, "secret")}
	n, err := openNode(t.Context(), config.Settings{Store: "pebble:" + t.TempDir() + "/data", Tokens: tokens}, silent())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// operations returns every operation of the API that is not GET, as its description has them.
func operations(t *testing.T) (all []string) {
	t.Helper()
	n := whole(t)
	w := httptest.NewRecorder()
	n.handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/openapi.json", http.NoBody))
	var described struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &described); err != nil {
		t.Fatal(err)
	}
	for path, methods := range described.Paths {
		for _, method := range []string{"POST", "PUT", "DELETE", "PATCH"} {
			if _, has := methods[strings.ToLower(method)]; has {
				all = append(all, method+" "+path)
			}
		}
	}
	slices.Sort(all)
	return all
}

// TestActsAreEverywhere: every act is an operation of the API and a command, the dashboard has a button of it, and every operation
// of the API that changes something is an act or is known to be none. That every act is a tool of millrace mcp is tested there.
func TestActsAreEverywhere(t *testing.T) {
	all := operations(t)
	is := map[string]bool{}
	offered := templates(t)
	try := func(name, method, path, command string) {
		path, _, _ = strings.Cut(path, "?")
		is[method+" "+path] = true
		if !slices.Contains(all, method+" "+path) {
			t.Errorf("the act %s: the API has no %s %s", name, method, path)
		}
		if !hasCommand(t, command) {
			t.Errorf("the act %s: there is no command %q", name, command)
		}
		if !regexp.MustCompile(`[ "]` + regexp.QuoteMeta(name) + `[ "]`).MatchString(offered) {
			t.Errorf("the act %s: no page of the dashboard offers it", name)
		}
	}
	for _, a := range act.All {
		try(a.Name, a.Method, a.Path, a.Command)
	}
	for _, m := range act.AllMany {
		try(m.Name, "POST", m.Path, m.Command)
	}
	for _, operation := range all {
		if !is[operation] && noActs[operation] == "" && !overviews.MatchString(operation) {
			t.Errorf("%s is in the table of acts nowhere: add it there, or say here why it is none", operation)
		}
	}
}

// hasCommand reports whether the command line has a command of those words that can be run.
func hasCommand(t *testing.T, words string) bool {
	t.Helper()
	parser, err := kong.New(new(commands), kong.Name("millrace"))
	if err != nil {
		t.Fatal(err)
	}
	at := parser.Model.Node
	for word := range strings.FieldsSeq(words) {
		i := slices.IndexFunc(at.Children, func(n *kong.Node) bool { return n.Name == word })
		if i < 0 {
			return false
		}
		at = at.Children[i]
	}
	return len(at.Children) == 0
}

// templates returns the source of the pages, and of what chooses their buttons.
func templates(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("../../shared/web/templates/*.html")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range append(files, "../../shared/web/render.go", "../../shared/web/many.go") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}
