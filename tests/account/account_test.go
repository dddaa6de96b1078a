package account_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/access"
)

// TestStack deploys the template as it is and uses it: a job by an instance, an order that an event wakes, a stream with a name that
// holds what gateways treat apart, what runs each minute. Then it deploys another value, a second stack beside it, and deletes that:
// its tables stay.
func TestStack(t *testing.T) {
	a := open(t)
	one := a.deploy(t, "one")
	var nothing struct{ Code string }
	if one.ask(t, "GET", "/jobscheduler/master/api/nothing", "", http.StatusNotFound, &nothing); nothing.Code != "not_found" {
		t.Errorf("what is nowhere is the gateway's 404 and not a function's: %+v", nothing)
	}
	one.ask(t, "GET", "/api/v1/queues", "", http.StatusOK, nil)
	t.Run("its secrets", one.secrets)
	t.Run("a job", one.job)
	t.Run("an order", one.order)
	t.Run("a stream", one.stream)
	t.Run("a sync task", one.task)
	t.Run("an instance", one.exchange)
	t.Run("a schedule", one.schedule)
	t.Run("a follower", one.follow)
	t.Run("a repeated request", one.repeat)
	t.Run("the dashboard", one.dashboard)
	if out, err := a.script(t, "scripts/smoke", "http://"+one.host, secret); err != nil || !strings.HasSuffix(out, " works\n") {
		t.Errorf("%v\n%s", err, out)
	}
	for function, tick := range map[string]string{"SweepFunction": "sweep", "CronFunction": "cron"} {
		if got := one.invoke(t, function, `{"tick":"`+tick+`","time":"2026-01-01T00:00:00Z"}`); got != `""` {
			t.Errorf("%s: %s", function, got)
		}
	}

	again := a.deploy(t, "one", "LogLevel=debug", "Tracing=Active", "DeletionProtection=true", "CorsOrigins=https://app.example, http://localhost:3000")
	if again.host != one.host {
		t.Errorf("an update moved the API from %s to %s", one.host, again.host)
	}
	t.Run("a page of another origin", one.page)
	var refused string
	if a.does(t, &refused, "drop", "one-journal"); !strings.Contains(refused, "deletion protection") {
		t.Errorf("deleting a table that is protected: %q", refused)
	}
	one.ask(t, "GET", "/api/v1/definitions", "", http.StatusOK, nil)
	one.learns(t, "7")
	two := a.deploy(t, "two", "DomainName=two.example", "CertificateArn="+certificate)
	if two.host != "two.example" {
		t.Errorf("the second stack is at %s, want the name that it was given", two.host)
	}
	two.ask(t, "GET", "/api/v1/streams", "", http.StatusOK, nil)
	var deleted outcome
	a.does(t, &deleted, "delete", "two")
	if deleted.Status != "DELETE_COMPLETE" {
		t.Errorf("the second stack is %+v", deleted)
	}
	var tables []string
	a.does(t, &tables, "tables")
	for _, table := range []string{"two-journal", "two-work", "two-definitions"} {
		if !slices.Contains(tables, table) {
			t.Errorf("%s went with its stack; there are %v", table, tables)
		}
	}
}

// tokens are lists that no function could read, with what is said of each.
var tokens = map[string]string{
	"ci":                        "Tokens: want a list of tokens as JSON, with its quotes: [{",
	"[{name:ci,role:producer}]": "Tokens: want a list of tokens as JSON, with its quotes: [{", // what a shell leaves of it
	"- {name: ci}":              "Tokens: want a list of tokens as JSON, with its quotes: [{",
	`[{"name":"ci",}]`:          "Tokens: no JSON (",
	`[{"name":"ci"}]`:           "Tokens: [0]: a token has a name, a role and a sha256, and nothing else; want [{",
	`[{"name":"ci","role":"boss","sha256":""}]`:                                          "Tokens: [0].role: want one of viewer, producer,",
	`[{"name":"a\"","role":"admin","sha256":""}]`:                                        "Tokens: [0].name: want a text without quotes",
	`[{"name":"ci","role":"admin","sha256":"secret"}]`:                                   "Tokens: [0].sha256: want 64 hexadecimal digits, as from: printf",
	fmt.Sprintf(`[{"name":"a","role":"admin","sha256":"%064x"}, 1, {"b":2}]`, 1):         "Tokens: [1]: a token has",
	fmt.Sprintf(`[{"name":"a","role":"admin","sha256":"%064x"},%[2]s]`, 1, another("a")): "Tokens: two tokens have the same name; give each its own",
	fmt.Sprintf(`[{"name":"a","role":"admin","sha256":"%064x"},%[2]s]`, 2, another("b")): "Tokens: two tokens have the same sha256; give each its own",
	"@nowhere.json": "Tokens=@nowhere.json: No such file or directory",
	fmt.Sprintf(`[{"name":"%s","role":"admin","sha256":"%064x"}]`, strings.Repeat("n", 4096), 1): "Tokens: more than the 4096 bytes of a parameter; put it into the secret",
}

func another(name string) string {
	return fmt.Sprintf(`{"name":"%s","role":"viewer","sha256":"%064x"}`, name, 2)
}

const certificate = "arn:aws:acm:us-east-1:123456789012:certificate/c"

// TestPlan: what is wrong with a deploy is said before anything is built.
func TestPlan(t *testing.T) {
	a := open(t)
	for _, test := range []struct{ given, want string }{
		{"WorkerConcurrency=32", "new\nmillrace\nTablePrefix=millrace\nWorkerConcurrency=32\n"},
		{"WorkerConcurrency=1", "WorkerConcurrency=1: want a number from 2 to 1000\n"},
		{"LogLevel=loud", "LogLevel=loud: want one of debug, info, warn, error\n"},
		{"RetentionAge=week", "RetentionAge=week: want a duration such as 7d or 36h\n"},
		{"CorsOrigins=*", "CorsOrigins=*: want origins such as https://app.example.com, separated by commas\n"},
		{"DomainName=millrace.example", "DomainName=millrace.example: want its certificate too, CertificateArn=arn:aws:acm:"},
		{"CertificateArn=" + certificate, "CertificateArn=" + certificate + ": want the name that it is for too, DomainName="},
		{"HostedZoneId=Z1", "HostedZoneId=Z1: want the name that it is for too, DomainName="},
		{"Prefix=x", "Prefix: the template has no such parameter; it has "},
	} {
		if got := a.plan(t, test.given); !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: %q, want %q", test.given, got, test.want)
		}
	}
	for given, want := range tokens {
		if got := a.plan(t, "Tokens="+given); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", given, got, want)
		}
	}
	for _, role := range access.Roles() {
		list := fmt.Sprintf(`[{"name":"t","role":"%s","sha256":"%064x"}]`, role, 1)
		if got := a.plan(t, "Tokens="+list); !strings.HasSuffix(got, "\nTokens="+list+"\n") {
			t.Errorf("%s: %q, want it taken", list, got)
		}
	}
	a.deploy(t, "millrace")
	for given, want := range map[string]string{
		"TablePrefix=millrace": "update\nmillrace\nTablePrefix=millrace\n",
		"TablePrefix=other":    "TablePrefix=other: the stack millrace has its data in the tables of millrace; others would be empty.",
	} {
		if got := a.plan(t, given); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", given, got, want)
		}
	}
}

// TestDeploy does what make deploy does. The first fails, and the next is not hindered by what it leaves. It makes a token, which is what
// the API asks for, and another deploy keeps it. Tables outlive their stack, and a new one takes them up with what they hold.
func TestDeploy(t *testing.T) {
	a := open(t)
	a.fail(t, "millrace-dev")
	s := &stack{account: a, name: "millrace-dev", token: find(t, a.make(t), `export MILLRACE_TOKEN=(\S+)`)}
	if again := a.make(t); strings.Contains(again, "MILLRACE_TOKEN") {
		t.Errorf("another deploy is not as the one before:\n%s", again)
	}
	s.define(t, s.token, "PUT", definitions, `"statusCode": 200`)
	s.define(t, "another", "GET", "", `"statusCode": 401`)
	s.quoted(t)

	var deleted outcome
	a.does(t, &deleted, "delete", s.name)
	if out, err := a.script(t, "scripts/deploy", "default"); err == nil || !strings.Contains(out, "scripts/deploy-import default TablePrefix=millrace-dev") {
		t.Errorf("a deploy onto tables that are there: %v\n%s", err, out)
	}
	if out, err := a.script(t, "scripts/deploy-import"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := a.script(t, os.Getenv("MILLRACE_TEST_ACCOUNT_PYTHON"), "scripts/deploy-plan", "default"); err != nil || !strings.HasPrefix(out, "new\n") {
		t.Errorf("the tables alone are no deploy: %v\n%s", err, out)
	}
	a.deploy(t, s.name).define(t, secret, "GET", "", `ParcelArrived`)
}

// quoted deploys values with quotes, a space, and nothing in them, which come as they were given.
func (s *stack) quoted(t *testing.T) {
	t.Helper()
	list := fmt.Sprintf(`[{"name":"ci","role":"producer","sha256":"%064x"},{"name":"é b","role":"admin","sha256":"%064x"}]`, 1, 2)
	file := filepath.Join(t.TempDir(), "tokens.json")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(list, ",{", ",\n  { ")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.account.make(t, "Tokens=@"+file, "DashboardMask=password, iban", "HistoryAge=")
	var kept, variables string
	s.account.does(t, &kept, "secret", s.name)
	s.account.does(t, &variables, "variables", s.name, "EmitFunction")
	if want := `{"tokens":` + list + `,`; !strings.HasPrefix(kept, want) {
		t.Errorf("the secret is %s, want %s", kept, want)
	}
	if !strings.Contains(variables, "mask: [password, iban]") || strings.Contains(variables, "history") {
		t.Errorf("the variables are %s", variables)
	}
}

// fail makes a first deploy fail once there are tables, which go again.
func (a *account) fail(t *testing.T, name string) {
	t.Helper()
	failing := &account{a.endpoint, a.programs, a.lacking, true}
	var came outcome
	failing.does(t, &came, "deploy", name, name, a.programs, "AdminTokenSha256="+strings.Repeat("0", 64))
	if came.Status != "ROLLBACK_COMPLETE" {
		t.Fatalf("the stack is %+v, and its first deploy was to fail", came)
	}
	var tables []string
	a.does(t, &tables, "tables")
	for _, left := range tables {
		if strings.HasPrefix(left, name+"-") {
			t.Errorf("the deploy that failed has left %s", left)
		}
	}
}

// define invokes the function that shows and replaces definitions, as the gateway does.
func (s *stack) define(t *testing.T, token, method, body, want string) {
	t.Helper()
	request, err := json.Marshal(map[string]any{
		"version": "2.0", "routeKey": "ANY /api/v1/definitions", "rawPath": "/api/v1/definitions", "body": body,
		"headers":        map[string]string{"authorization": "Bearer " + token, "content-type": "application/json"},
		"requestContext": map[string]any{"http": map[string]string{"method": method, "path": "/api/v1/definitions"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.invoke(t, "DefineFunction", string(request)); !strings.Contains(got, want) {
		t.Errorf("%s: %s, want %s", method, got, want)
	}
}

// TestTheAccountDenies shows that the account checks what the template allows, so that the other tests mean something.
func TestTheAccountDenies(t *testing.T) {
	a := open(t)
	poor := a.without("dynamodb:UpdateItem").deploy(t, "poor")
	poor.ask(t, "POST", "/api/v1/instances", `{"name":"w","jobs":["/topics/*"],"capacity":1}`, http.StatusServiceUnavailable, nil)
}

func (s *stack) job(t *testing.T) {
	s.ask(t, "PUT", "/api/v1/definitions", definitions, http.StatusOK, nil)
	var instance, job struct{ ID string }
	s.ask(t, "POST", "/api/v1/instances", `{"name":"w","jobs":["/topics/*"],"capacity":4}`, http.StatusCreated, &instance)
	s.ask(t, "POST", "/api/v1/jobs", `{"topic":"elsewhere","properties":{"n":1}}`, http.StatusCreated, &job)
	var claimed struct{ Claims []struct{ ID, Token string } }
	s.ask(t, "POST", "/api/v1/instances/"+instance.ID+"/claims", `{"max":1,"wait":"10s"}`, http.StatusOK, &claimed)
	if len(claimed.Claims) != 1 || claimed.Claims[0].ID != job.ID {
		t.Fatalf("claimed %+v, want %s", claimed, job.ID)
	}
	lease := "/api/v1/leases/" + claimed.Claims[0].Token
	s.ask(t, "POST", lease+"/heartbeat", `{"logs":[{"message":"half done"}]}`, http.StatusOK, nil)
	s.ask(t, "POST", lease+"/complete", `{"result":"ok"}`, http.StatusOK, nil)
	s.ask(t, "GET", "/api/v1/jobs/"+job.ID, "", http.StatusNotFound, nil) // successes of topics leave no history
}

// secrets looks at what the account keeps the tokens in, which no variable of a function holds, and puts more of them there by hand
// than variables have room for.
func (s *stack) secrets(t *testing.T) {
	var kept string
	s.account.does(t, &kept, "secret", s.name)
	if want := fmt.Sprintf("%x", sha256.Sum256([]byte(secret))); !strings.Contains(kept, want) {
		t.Errorf("the secret is %q, want the hash of the admin token", kept)
	}
	var variables string
	s.account.does(t, &variables, "variables", s.name, "EmitFunction")
	if !strings.Contains(variables, "MILLRACE_SECRETS") || strings.Contains(variables, "sha256") {
		t.Errorf("the variables are %s", variables)
	}
	tokens := fmt.Sprintf(`{"name":"admin","role":"admin","sha256":"%x"}`, sha256.Sum256([]byte(secret)))
	for n := range 100 { // together longer than a function's variables may be
		tokens += fmt.Sprintf(`,{"name":"n%d","role":"viewer","sha256":"%x"}`, n, sha256.Sum256(fmt.Append(nil, n)))
	}
	s.account.does(t, &kept, "secret", s.name, `{"tokens":[`+tokens+`]}`)
}

// learns waits until a function that runs already accepts a token that was put into the secret: a minute, and no deploy.
func (s *stack) learns(t *testing.T, token string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	other := *s
	other.token = token
	for other.status(t, "GET", "/api/v1/queues") != http.StatusOK {
		select {
		case <-ctx.Done():
			t.Fatal("a token that was put into the secret is not accepted")
		case <-time.After(time.Second):
		}
	}
	other.token = "100" // nobody's
	other.ask(t, "GET", "/api/v1/queues", "", http.StatusUnauthorized, nil)
}

// order lets an order wait for an event, which wakes a worker through the queue.
func (s *stack) order(t *testing.T) {
	s.ask(t, "POST", "/api/v1/orders/%2Fparcels", `{"id":"1"}`, http.StatusCreated, nil)
	s.ask(t, "POST", "/jobscheduler/master/api/event", `[{"TYPE":"ParcelArrived","key":"/p"}]`, http.StatusCreated, nil)
	var read struct {
		LastEventID    uint64
		EventSnapshots []struct{ TYPE string }
	}
	for range 5 { // each waits for events, as long as a function may
		path := fmt.Sprintf("/jobscheduler/master/api/event?after=%d&return=OrderFinished&timeout=20s", read.LastEventID)
		if s.ask(t, "GET", path, "", http.StatusOK, &read); len(read.EventSnapshots) > 0 {
			return
		}
	}
	t.Error("the order has not finished")
}

// stream appends to a stream whose name has a slash, a space, a percent sign and a question mark, and reads it.
func (s *stack) stream(t *testing.T) {
	const path = "/api/v1/streams/a%2Fb%20100%25%3F/events"
	const said = `{"event":{"name":"said"},"payload":{"n":1},"trigger":{"type":"manual","name":"t"},` +
		`"system":{"id":"` + someone + `","name":"n","time":"2021-03-10T22:13:32Z","timezone":"UTC"}}`
	s.ask(t, "POST", path, said, http.StatusCreated, nil)
	var events []struct{ Payload struct{ N int } }
	if s.ask(t, "GET", path, "", http.StatusOK, &events); len(events) != 1 || events[0].Payload.N != 1 {
		t.Errorf("the stream holds %+v", events)
	}
}

const definitions = `{"jobs":[{"path":"/topics/elsewhere","target":{"instances":true}}],
	"queues":[{"name":"lane","topics":["lane"],"type":"ordered","keep_jobs":true}],
	"job_chains":[{"path":"/parcels","nodes":[{"id":"wait","wait":{"event":"ParcelArrived"}},{"id":"end"}]}]}`
