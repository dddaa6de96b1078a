package e2e_test

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/tests/process"
)

const ordered = `
jobs: [{path: /j, target: {instances: true}}]
job_chains:
  - {path: /a/c, nodes: [{id: A, job: /j}, {id: B, job: /j}, {id: end}]}
`

// TestOrderCommands goes through what a user does with orders on the command line, and what each exit status says.
func TestOrderCommands(t *testing.T) {
	t.Parallel()
	file := write(t, "millrace.yaml", ordered)
	env := environment(serve(t, embedded(t), func(s *process.Server) { s.Env = append(s.Env, "MILLRACE_CONFIG="+file) }))
	do := func(status int, said string, args ...string) string {
		t.Helper()
		r := command(t, env, "", args...)
		if r.status != status || !strings.Contains(r.out+r.err, said) {
			t.Errorf("%v: status %d, want %d saying %q: %s%s", args, r.status, status, said, r.out, r.err)
		}
		return strings.TrimSpace(r.out)
	}
	do(0, "/a/c,1", "order", "add", "/a/c", "1", `{"n":1}`)
	do(4, "has an order", "order", "add", "/a/c", "1")
	do(3, "no such job chain", "order", "add", "/none", "1")
	do(2, "no JSON object", "order", "add", "/a/c", "2", "n=1")
	do(0, "Planned", "order", "add", "/a/c", "2", "--delay", "1h", "-o", "json")
	do(0, `"TYPE":"Due"`, "order", "show", "/a/c", "1", "-o", "jsonl")
	do(0, "", "order", "run-now", "/a/c", "2")
	do(0, "", "order", "suspend", "/a/c", "1")
	do(4, "suspended already", "order", "suspend", "/a/c", "1")
	do(0, "suspended", "order", "why", "/a/c", "1")
	do(0, "/a/c,1", "order", "list", "/a/", "--obstacle", "Suspended")
	do(0, "", "order", "resume", "/a/c", "1", `{"n":2}`)
	do(0, "", "order", "set-node", "/a/c", "1", "B")
	do(1, "no node", "order", "set-node", "/a/c", "1", "X")
	do(0, "", "order", "reset", "/a/c", "1")
	do(0, "", "order", "skip", "/a/c", "1")
	do(4, "on version 1 already", "order", "move", "/a/c", "1")
	do(1, "version", "order", "move", "/a/c", "1", "7")
	do(3, "no such order", "order", "remove", "/a/c", "3")

	do(2, "nothing is selected", "order", "act", "--act", "suspend")
	do(2, "not known", "order", "act", "--act", "suspend", "--filter", "chain=/a/c")
	do(0, "2", "order", "act", "--act", "suspend", "--filter", "path=/a/", "--dry-run")
	do(0, "done", "order", "act", "--act", "suspend", "--filter", "path=/a/", "--filter", "state=Due")
	id := do(0, "", "order", "act", "--act", "remove", "--all", "--detach")
	do(0, `"count":2`, "act", "show", id, "-o", "jsonl")
	do(3, "no such act", "act", "stop", "none")
	do(1, "no job is as the filter says", "job", "act", "--act", "retry", "--all")
	do(0, "", "job", "add", "x", "{}")
	do(0, `"done":1`, "job", "act", "--act", "stop", "--filter", "topic=x", "-o", "jsonl")
}
