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
	"strings"
	"testing"
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
}

// stack is what was deployed.
type stack struct {
	account *account
	name    string
	host    string // of its API
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
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-tags", "lambda.norpc", "-ldflags", "-s -w",
		"-o", a.programs+"/", "../../functions/...")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the functions: %v\n%s", err, out)
	}
	return a
}

// without returns the account for a template that nowhere allows an action.
func (a *account) without(action string) *account {
	return &account{a.endpoint, a.programs, action}
}

// does runs stack.py and reads what it prints into into.
func (a *account) does(t *testing.T, into any, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Getenv("MILLRACE_TEST_ACCOUNT_PYTHON"), append([]string{"stack.py"}, args...)...)
	cmd.Env = append(os.Environ(), "WITHOUT="+a.lacking)
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
	at, err := url.Parse(came.Outputs.URL)
	if err != nil {
		t.Fatal(err)
	}
	id, _, _ := strings.Cut(at.Host, ".")
	return &stack{a, name, id + ".execute-api.localhost:" + a.endpoint.Port()}
}

// invoke invokes a function as a schedule does, and returns its error; empty: none.
func (s *stack) invoke(t *testing.T, function, payload string) string {
	t.Helper()
	var came struct{ Error, Payload string }
	if s.account.does(t, &came, "invoke", s.name, function, payload); came.Error == "" {
		return ""
	}
	return came.Error + ": " + came.Payload
}

// ask sends a request through the gateway, checks the status, and reads the response into into, if it is not nil.
func (s *stack) ask(t *testing.T, method, path, body string, want int, into any) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.account.endpoint.String()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Host = s.host
	r.Header.Set("Authorization", "Bearer "+secret)
	r.Header.Set("X-Producer-ID", someone) // streams need it, others ignore it
	r.Header.Set("X-Consumer-ID", someone)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != want {
		t.Fatalf("%s %s: %d %s, want %d (%v)", method, path, response.StatusCode, text, want, err)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%s %s: %s: %v", method, path, text, err)
	}
}
