package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/tests/process"
)

// write puts a text in a file of that name.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestApply goes through what an operator does with definitions.
func TestApply(t *testing.T) {
	t.Parallel()
	server := served(t)
	declare(t, server, "{}")
	env := environment(server)
	good := write(t, "good.yaml", "sources:\n  crm: {collections: [{name: users}]}\njobs: [{path: /topics/a}]\n")
	changed := "jobs: [{path: /topics/a, timeout: 90}]"
	bad := write(t, "bad.yaml", "jobs:\n- {path: a}\n- {path: /b, attempts: 0}\nfoo: 1\n")
	for _, step := range []struct {
		name, input  string
		args         []string
		status       int
		out, message string // all of the output, a part of the message
	}{
		{"dry run", "", []string{good, "--dry-run"}, 0, "+ Job:/topics/a\n+ Source:/crm\n", "2 added, 0 replaced, 0 removed; nothing was changed"},
		{"apply", "", []string{good}, 0, "+ Job:/topics/a\n+ Source:/crm\n", "2 added, 0 replaced, 0 removed\n"},
		{"again", "", []string{good}, 0, "", "0 added, 0 replaced, 0 removed\n"},
		{"mistakes", "", []string{bad}, 2, "", bad + ":2: jobs[0].path: a path begins with /\n  " + bad + ":3: jobs[1].attempts: want at least 1"},
		{"standard input", changed, []string{"-"}, 0, "~ Job:/topics/a\n    timeout: none → \"1m30s\"\n- Source:/crm\n", "1 replaced, 1 removed"},
		{"lines", "{}", []string{"-", "-o", "jsonl"}, 0, `{"change":"removed","key":"Job:/topics/a"}` + "\n", ""},
		{"a command", "jobs: [{path: /a, target: {command: [ls]}}]", []string{"-"}, 1, "", "jobs[0].target.command: new commands are for the server's own file"},
		{"no file", "", []string{good + "x"}, 2, "", "no such file"},
	} {
		got := command(t, env, step.input, append([]string{"apply"}, step.args...)...)
		if got.status != step.status || got.out != step.out || !strings.Contains(got.err, step.message) {
			t.Errorf("%s: %+v, want status %d, %q and %q", step.name, got, step.status, step.out, step.message)
		}
	}
	if r := command(t, []string{"MILLRACE_URL=" + server.URL(), "MILLRACE_TOKEN=wrong"}, "", "apply", good); r.status != 5 {
		t.Errorf("apply with a wrong token: %+v, want status 5", r)
	}
}

// TestTheServersFile: the file is applied when it differs from the last one that was; otherwise what was applied since stays.
func TestTheServersFile(t *testing.T) {
	t.Parallel()
	store := embedded(t)
	file := write(t, "millrace.yaml", "jobs: [{path: /file, target: {command: [ls]}}]")
	restarted := func(then func(env []string)) {
		t.Helper()
		s := &process.Server{Binary: os.Getenv(process.Variable), Store: store, Token: token, Env: []string{"MILLRACE_CONFIG=" + file}}
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		then(environment(s))
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	inForce := func(env []string, want string) {
		t.Helper()
		if r := command(t, env, want, "apply", "-", "--dry-run"); r.status != 0 || r.out != "" {
			t.Errorf("%+v, want nothing to change, since %s is in force", r, want)
		}
	}
	restarted(func(env []string) {
		inForce(env, "jobs: [{path: /file, target: {command: [ls]}}]")
		command(t, env, "jobs: [{path: /api}]", "apply", "-")
	})
	restarted(func(env []string) { inForce(env, "jobs: [{path: /api}]") })
	if err := os.WriteFile(file, []byte("jobs: [{path: /file2}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	restarted(func(env []string) { inForce(env, "jobs: [{path: /file2}]") })
}
