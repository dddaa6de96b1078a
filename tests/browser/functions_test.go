package browser_test

import (
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/millrace/millrace/shared/store/dynamo"
	"github.com/millrace/millrace/tests/containers"
	"github.com/millrace/millrace/tests/gateway"
	"github.com/millrace/millrace/tests/grants"
)

// serveFunctions starts the functions as Lambda runs them, two instances of each, behind a gateway, on a fresh store in DynamoDB. It is
// [serve] otherwise.
func serveFunctions(t *testing.T, definitions string) *server {
	t.Helper()
	if os.Getenv(browserVariable) == "" {
		t.Skip("left out: run by make test, where a browser is there")
	}
	cfg, prefix := containers.AWS(t), containers.Prefix()
	tables, err := dynamo.Open(t.Context(), dynamo.Options{Prefix: prefix, AWS: &cfg})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tables.Close() })
	if err := tables.CreateTables(t.Context()); err != nil {
		t.Fatal(err)
	}
	programs := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", programs+"/", "../../functions/...").CombinedOutput(); err != nil {
		t.Fatalf("build the functions: %v\n%s", err, out)
	}
	env := append(os.Environ(), "AWS_REGION="+cfg.Region, "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test",
		"MILLRACE_STORE=dynamodb:"+prefix, "MILLRACE_BELL=sqs:"+containers.Queue(t), "MILLRACE_ADMIN_TOKEN="+token, "MILLRACE_TOKENS=", "MILLRACE_CONFIG=")
	g := gateway.Start(t, gateway.Options{Template: "../../template.yaml", Programs: programs, Instances: 2, Env: func(function string) []string {
		granted := grants.Record(t, grants.Options{Function: function, Endpoint: *cfg.BaseEndpoint})
		return append(env[:len(env):len(env)], "AWS_ENDPOINT_URL="+granted.URL)
	}})
	s := &server{t: t, gateway: g.URL}
	declared, err := os.ReadFile(definitions)
	if err != nil {
		t.Fatal(err)
	}
	s.send(http.MethodPut, "/api/v1/definitions", declared, "Content-Type", "application/yaml")
	return s
}

// TestOnFunctions: the pages and the main acts, where the dashboard is a function: no page complains, an open one follows what happens, and who
// signs out is out.
func TestOnFunctions(t *testing.T) {
	const text = "some text"
	s := serveFunctions(t, "testdata/functions.yaml")
	f := fill(s, text)
	b := open(t, s)
	for _, path := range f.pages(text) {
		b.visit(path)
		b.judge()
	}

	b.visit("/journal?return=CustomEvent")
	s.ask("POST", "/jobscheduler/master/api/event", []any{map[string]any{"TYPE": "Seen", "key": "by itself"}})
	b.shows("by itself")

	b.visit("/jobs")
	b.follow("Add a job")
	b.do(chromedp.SendKeys("#topic", "later"), chromedp.SendKeys("#properties", `{"name":"ada"}`))
	b.follow("Add a job")
	b.shows("QUEUED")
	b.follow("Stop")
	b.follow("Stop")
	b.shows("STOPPED")

	b.visit("/failures")
	b.shows("/topics/echo")
	b.follow("Run all again")
	b.shows("is selected")

	b.visit("/orders")
	b.follow("/demo/parcel") // whose slashes the gateway unescapes
	b.follow("Add an order")
	b.do(chromedp.SendKeys("#id", "mine"))
	b.follow("Add an order")
	b.visit("/orders/" + url.PathEscape("/demo/parcel") + "/mine")
	b.follow("Answer")
	b.do(chromedp.SendKeys("#answer", "send"))
	b.follow("Answer")
	b.shows("OrderFinished")

	b.visit("/definitions")
	declared := found[string](b, "document.querySelector('#definitions').value")
	b.do(chromedp.SetValue("#definitions", strings.Replace(declared, "0 0 3 ", "0 0 4 ", 1)))
	b.follow("Show what would change")
	b.shows("0 0 4 ")
	b.follow("Apply")
	b.visit("/schedules")
	b.shows("0 0 4 ")

	b.within("//header", "Sign out")
	for range 2 { // at both instances
		b.visit("/jobs")
		b.shows("Token")
	}
}
