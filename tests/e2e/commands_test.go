package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/tests/process"
)

// result is the outcome of a command.
type result struct {
	status   int
	out, err string
}

// command runs the program with an environment of its own and waits for it.
func command(t *testing.T, env []string, input string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, os.Getenv(process.Variable), args...)
	c.Env = append([]string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}, env...)
	c.Stdin = strings.NewReader(input)
	var out, stderr bytes.Buffer
	c.Stdout, c.Stderr = &out, &stderr
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("millrace %q: %v", args, err)
	}
	return result{c.ProcessState.ExitCode(), out.String(), stderr.String()}
}

func environment(s *process.Server) []string {
	return []string{"MILLRACE_URL=" + s.URL(), "MILLRACE_TOKEN=" + token}
}

// TestCommands goes through what a user does on the command line.
func TestCommands(t *testing.T) {
	t.Parallel()
	env := environment(served(t))
	if r := command(t, env, "", "emit", "ParcelMoved", "/parcels/17", "to=Bremen", "weight:=2.5"); r.status != 0 {
		t.Fatalf("emit: %+v", r)
	}
	lines := `{"TYPE":"ParcelMoved","key":"/parcels/17","to":"Köln"}` + "\n\n" + `{"TYPE":"ParcelRemoved","key":"/parcels/18"}` + "\n"
	for _, said := range []string{"2 events appended", "0 events appended, 2 were there already"} {
		if r := command(t, env, lines, "emit", "--once", "k", "--quiet"); r.status != 0 || !strings.Contains(r.err, said) {
			t.Errorf("emit from standard input: %+v, want %q", r, said)
		}
	}
	followed := command(t, env, "", "follow", "--path", "/parcels/", "--after", "0", "--idle", "20ms", "--limit", "2", "--output", "jsonl")
	var saw []string
	for line := range strings.Lines(followed.out) {
		_, rest, _ := strings.Cut(line, ",")
		saw = append(saw, strings.TrimSpace(rest))
	}
	want := []string{
		`"key":"/parcels/17","TYPE":"ParcelMoved","to":"Bremen","weight":2.5}`,
		`"key":"/parcels/17","TYPE":"ParcelMoved","to":"Köln"}`,
		`"key":"/parcels/18","TYPE":"ParcelRemoved"}`,
	}
	if diff := cmp.Diff(want, saw); diff != "" || followed.status != 0 {
		t.Errorf("follow: status %d, %s %s", followed.status, followed.err, diff)
	}
	if r := command(t, env, "", "follow", "--limit", "-1", "--output", "jsonl"); !strings.Contains(r.out, "ParcelRemoved") || strings.Count(r.out, "\n") != 1 {
		t.Errorf("follow --limit -1: %+v, want the newest event", r)
	}
	snapshot := command(t, env, "", "snapshot", "/parcels/", "--output", "json")
	var state struct {
		Objects []struct{ Key, To, LastType string }
	}
	if err := json.Unmarshal([]byte(snapshot.out), &state); err != nil || len(state.Objects) != 1 || state.Objects[0].To != "Köln" {
		t.Errorf("snapshot: %+v, %v, want /parcels/17 in Köln", snapshot, err)
	}
	if r := command(t, env, "", "check"); r.status != 0 || strings.Contains(r.out, "FAILED") {
		t.Errorf("check: %+v", r)
	}
	for _, format := range []string{"table", "json", "jsonl"} {
		if r := command(t, env, "", "version", "--output", format); r.status != 0 || r.out == "" {
			t.Errorf("version --output %s: %+v", format, r)
		}
	}
}

// TestExitStatus: each failure has its exit status, and a message that helps.
func TestExitStatus(t *testing.T) {
	t.Parallel()
	env := environment(served(t))
	if r := command(t, env, "", "emit", "A", "--once", "taken"); r.status != 0 {
		t.Fatalf("emit: %+v", r)
	}
	tests := map[string]struct {
		env    []string
		input  string
		args   []string
		status int
		says   string
	}{
		"no command":           {env, "", nil, 2, "expected one of"},
		"unknown command":      {env, "", []string{"emmit"}, 2, "emit"},
		"unknown flag":         {env, "", []string{"snapshot", "--colour"}, 2, "--colour"},
		"built-in type":        {env, "", []string{"emit", "OrderAdded"}, 2, "OrderAdded"},
		"bad field":            {env, "", []string{"emit", "A", "/k", "novalue"}, 2, "NAME=TEXT"},
		"bad JSON in a field":  {env, "", []string{"emit", "A", "/k", "n:=x"}, 2, "n"},
		"bad line":             {env, "{\"TYPE\":\"A\"}\n{\n", []string{"emit"}, 2, "standard input, line 2"},
		"no such file":         {env, "", []string{"emit", "--file", "/nowhere"}, 2, "/nowhere"},
		"bad path":             {env, "", []string{"snapshot", "/a//b"}, 2, "body.paths"},
		"unknown return":       {env, "", []string{"follow", "--after", "0", "--return", "OrderLost"}, 2, "OrderLost"},
		"no token":             {env[:1], "", []string{"snapshot"}, 2, "MILLRACE_TOKEN"},
		"wrong token":          {append(env[:1:1], "MILLRACE_TOKEN=wrong"), "", []string{"snapshot"}, 5, "MILLRACE_TOKEN"},
		"key of other events":  {env, "", []string{"emit", "B", "--once", "taken"}, 4, "--once"},
		"server down":          {[]string{"MILLRACE_URL=http://127.0.0.1:1", "MILLRACE_TOKEN=x"}, "", []string{"snapshot"}, 1, "no server answers at http://127.0.0.1:1; start one with \"millrace dev\", or set MILLRACE_URL"},
		"no URL":               {[]string{"MILLRACE_URL=127.0.0.1", "MILLRACE_TOKEN=x"}, "", []string{"snapshot"}, 2, "http://"},
		"serve without tokens": {nil, "", []string{"serve", "--data", t.TempDir() + "/s"}, 2, "MILLRACE_ADMIN_TOKEN"},
		"serve what is no store": {
			[]string{"MILLRACE_ADMIN_TOKEN=x"}, "", []string{"serve", "--store", "redis:x"}, 2, "pebble:DIRECTORY",
		},
		"port without http://":    {[]string{"MILLRACE_URL=127.0.0.1:8080", "MILLRACE_TOKEN=x"}, "", []string{"snapshot"}, 2, `"127.0.0.1:8080" lacks http:// at its beginning`},
		"port that is none":       {[]string{"MILLRACE_URL=http://a:b", "MILLRACE_TOKEN=x"}, "", []string{"snapshot"}, 2, `"http://a:b" is no URL of a server: invalid port`},
		"field named as the type": {env, "", []string{"emit", "A", "/k", "TYPE=x"}, 2, "TYPE is the event's type, which is the first argument"},
		"field named as the key":  {env, "", []string{"emit", "A", "/k", "key=x"}, 2, "key is the event's key, which is the second argument"},
		"field that comes twice":  {env, "", []string{"emit", "A", "/k", "n=1", "n:=2"}, 2, "the field n is given twice"},
		"no events to count":      {env, "", []string{"follow", "--after", "0", "--count", "0"}, 2, "--count is 0, want at least 1"},
		"fewer events than none":  {env, "", []string{"follow", "--after", "0", "--count", "-1"}, 2, "--count is -1, want at least 1"},
		"requests for nothing":    {env, "", []string{"follow", "--after", "0", "--limit", "0"}, 2, "--limit is 0, want"},
		"no events of streams":    {env, "", []string{"stream", "tail", "-n", "0"}, 2, "--count is 0, want at least 1"},
		"tail of no stream":       {env, "", []string{"stream", "tail", "none"}, 3, "no stream"},
		"worker of no program":    {env, "", []string{"worker", "--jobs", "/topics/zz", "--", "/no/such"}, 2, "/no/such"},
		"time that is none":       {env, "", []string{"job", "add", "a", "--at", "x"}, 2, `--at: "x" is no time: want one such as 2026-01-31T12:00:00Z`},
		"date without a time":     {env, "", []string{"schedule", "backfill", "s", "2026-01-01", "2026-01-02"}, 2, "<from>: \"2026-01-01\" is no time: want one such as"},
		"tables of what has none": {nil, "", []string{"tables", "--store", "pebble:x"}, 2, "dynamodb:PREFIX"},
		"check of nothing":        {nil, "", []string{"check", "--data", "/nowhere"}, 2, "/nowhere"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := command(t, test.env, test.input, test.args...)
			if r.status != test.status || !strings.Contains(r.err, test.says) {
				t.Errorf("millrace %q: status %d, want %d; it says %q, want %q in it", test.args, r.status, test.status, r.err, test.says)
			}
		})
	}
}

// TestFollowCommandGoesOn: follow in a terminal outlives a kill -9 of the server and prints every event once.
func TestFollowCommandGoesOn(t *testing.T) {
	t.Parallel()
	s := serve(t, embedded(t))
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, os.Getenv(process.Variable), "follow", "--after", "0", "--count", "40", "--output", "jsonl")
	c.Env = append(os.Environ(), environment(s)...)
	var out bytes.Buffer
	c.Stdout = &out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	l := load(t, s, 2)
	l.await(t, 10)
	if err := errors.Join(s.Kill(), s.Start(ctx)); err != nil {
		t.Fatal(err)
	}
	l.await(t, 50)
	if err := c.Wait(); err != nil {
		t.Fatal(err)
	}
	l.end()
	var want []string
	for _, e := range readAll(t, dial(t, s))[:40] {
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, string(text))
	}
	if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(out.String()), "\n")); diff != "" {
		t.Errorf("(-journal +printed)\n%s", diff)
	}
}

// TestDrain: when it is told to stop, the server ends the long polls of followers at once and exits with status 0.
func TestDrain(t *testing.T) {
	t.Parallel()
	s := &process.Server{Binary: os.Getenv(process.Variable), Store: embedded(t), Token: token}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	now := newest(t, impatient(t, s))
	answered := make(chan error, 1)
	go func() {
		_, err := impatient(t, s).Read(t.Context(), client.Query{After: now, Wait: time.Minute})
		answered <- err
	}()
	metrics := func() bool {
		text, _, err := impatient(t, s).Get(t.Context(), "/metrics")
		return err == nil && followers(text) == "1"
	}
	eventually(t, "the follower waits", metrics)
	if err := s.Stop(); err != nil {
		t.Errorf("the server ended badly: %v", err) // as it does when requests do not end in its time
	}
	if err := <-answered; err != nil && !client.Temporary(err) {
		t.Errorf("the follower was answered %v, want nothing or something to try again", err)
	}
}

// followers returns how many requests wait for events, as /metrics says it.
func followers(metrics []byte) string {
	_, series, _ := strings.Cut(string(metrics), "\nmillrace_followers{")
	line, _, _ := strings.Cut(series, "\n")
	return line[strings.LastIndexByte(line, ' ')+1:]
}

// TestSecondServerIsRefused: one embedded store has one server.
func TestSecondServerIsRefused(t *testing.T) {
	t.Parallel()
	store := embedded(t)
	serve(t, store)
	r := command(t, []string{"MILLRACE_ADMIN_TOKEN=x"}, "", "serve", "--listen", "127.0.0.1:0", "--store", store)
	if r.status != 1 || !strings.Contains(r.err, "in use by another process") {
		t.Errorf("a second server: %+v, want that the store is in use", r)
	}
}
