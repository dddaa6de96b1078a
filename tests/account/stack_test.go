package account_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/millrace/millrace/tests/process"
)

const (
	secret  = "account-secret"
	someone = "2480b859-e08a-4414-9c7d-003bc1a4c238"
)

// account is an emulated AWS account, and the functions' programs.
type account struct {
	endpoint *url.URL
	programs string // a folder with one of each function
	lacking  string // an action that no policy of what is deployed allows; empty: none
	failing  bool   // what is deployed has something that cannot be made
}

// stack is what was deployed.
type stack struct {
	account *account
	name    string
	host    string // of its API
	token   string
}

// outcome is what stack.py prints of a stack.
type outcome struct {
	Status  string
	Outputs struct{ URL string }
	Failed  []string // what the account says of resources that could not be made
}

// open builds the functions. Without an account the test is left out.
func open(t *testing.T) *account {
	t.Helper()
	endpoint := os.Getenv("MILLRACE_TEST_ACCOUNT")
	if endpoint == "" {
		t.Skip("runs within scripts/with-account, as scripts/test does")
	}
	at, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	a := &account{endpoint: at, programs: t.TempDir()}
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-tags", "lambda.norpc,nethttpomithttp2", "-ldflags", "-s -w",
		"-o", a.programs+"/", "../../functions/...")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the functions: %v\n%s", err, out)
	}
	return a
}

// without returns the account for a template that nowhere allows an action.
func (a *account) without(action string) *account {
	return &account{a.endpoint, a.programs, action, a.failing}
}

// does runs stack.py and reads what it prints into into.
func (a *account) does(t *testing.T, into any, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Getenv("MILLRACE_TEST_ACCOUNT_PYTHON"), append([]string{"stack.py"}, args...)...)
	cmd.Env = append(os.Environ(), "WITHOUT="+a.lacking)
	if a.failing {
		cmd.Env = append(cmd.Env, "FAILING=1")
	}
	out, err := cmd.Output()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		out = append(out, failed.Stderr...)
	}
	if err == nil {
		err = json.Unmarshal(out, into)
	}
	if err != nil {
		t.Fatalf("stack.py %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// deploy creates or updates a stack with tables named after it.
func (a *account) deploy(t *testing.T, name string, parameters ...string) *stack {
	t.Helper()
	args := []string{"deploy", name, name, a.programs, fmt.Sprintf("AdminTokenSha256=%x", sha256.Sum256([]byte(secret)))}
	var came outcome
	a.does(t, &came, append(args, parameters...)...)
	if !strings.HasSuffix(came.Status, "_COMPLETE") || strings.Contains(came.Status, "ROLLBACK") {
		t.Fatalf("the stack %s is %s: %v", name, came.Status, came.Failed)
	}
	return &stack{a, name, a.host(t, came.Outputs.URL), secret}
}

// host returns where in the account an API is, which on AWS would be at that URL.
func (a *account) host(t *testing.T, of string) string {
	t.Helper()
	at, err := url.Parse(of)
	if err != nil {
		t.Fatal(err)
	}
	id, _, made := strings.Cut(at.Host, ".execute-api.")
	if !made { // a name of one's own
		return at.Host
	}
	return id + ".execute-api.localhost:" + a.endpoint.Port()
}

// plan returns what scripts/deploy-plan says of a deploy to prod, or what is wrong with it.
func (a *account) plan(t *testing.T, given ...string) string {
	t.Helper()
	out, err := a.script(t, os.Getenv("MILLRACE_TEST_ACCOUNT_PYTHON"), append([]string{"scripts/deploy-plan", "prod"}, given...)...)
	if failed := (*exec.ExitError)(nil); err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	return out
}

// make deploys as the script does that make calls, and returns what it prints.
func (a *account) make(t *testing.T, parameters ...string) string {
	t.Helper()
	out, err := a.script(t, "scripts/deploy", append([]string{"default", "Architecture=x86_64"}, parameters...)...)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return out
}

// script runs a program of the project as somebody who has the account's credentials.
func (a *account) script(t *testing.T, name string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "AWS_ENDPOINT_URL="+a.endpoint.String(), "AWS_REGION=us-east-1",
		"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// find returns the group of an expression in a text.
func find(t *testing.T, text, expression string) string {
	t.Helper()
	found := regexp.MustCompile(expression).FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("no %s in:\n%s", expression, text)
	}
	return found[1]
}

// invoke invokes a function and returns what it returns, or its error.
func (s *stack) invoke(t *testing.T, function, payload string) string {
	t.Helper()
	var came struct{ Error, Payload string }
	s.account.does(t, &came, "invoke", s.name, function, payload)
	return came.Error + came.Payload
}

// ask sends a request through the gateway, checks the status, and reads the response into into, if it is not nil.
func (s *stack) ask(t *testing.T, method, path, body string, want int, into any) {
	t.Helper()
	r, text := s.send(t, method, path, body)
	if r.StatusCode != want {
		t.Fatalf("%s %s: %d %s, want %d", method, path, r.StatusCode, text, want)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%s %s: %s: %v", method, path, text, err)
	}
}

// status returns the status of a request through the gateway.
func (s *stack) status(t *testing.T, method, path string) int {
	t.Helper()
	r, _ := s.send(t, method, path, "")
	return r.StatusCode
}

// send sends a request through the gateway; headers are name and value in turn.
func (s *stack) send(t *testing.T, method, path, body string, headers ...string) (*http.Response, []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.account.endpoint.String()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Host = s.host
	r.Header.Set("Authorization", "Bearer "+s.token)
	r.Header.Set("X-Producer-ID", someone) // streams need it, others ignore it
	r.Header.Set("X-Consumer-ID", someone)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := process.Client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, text
}
