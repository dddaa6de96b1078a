package e2e_test

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/tests/process"
)

const work = `
sources:
  shop:
    target: {command: [sh, -c, "echo one; echo two >&2"]}
    collections: [{name: orders}]
  broken:
    target: {command: [sh, -c, "echo oops >&2; exit 3"]}
    collections: [{name: orders}]
handlers:
  - {canvas: shop, space: WORKER, name: mail, target: {command: [cat]}}
`

// TestTaskCommands goes through what a user does with tasks on the command line, and what each exit status says.
func TestTaskCommands(t *testing.T) {
	t.Parallel()
	file := write(t, "millrace.yaml", work)
	env := environment(serve(t, embedded(t), func(s *process.Server) { s.Env = append(s.Env, "MILLRACE_CONFIG="+file) }))
	do := func(status int, said string, args ...string) string {
		t.Helper()
		r := command(t, env, "", args...)
		if r.status != status || !strings.Contains(r.out+r.err, said) {
			t.Errorf("%v: status %d, want %d saying %q: %s%s", args, r.status, status, said, r.out, r.err)
		}
		return strings.TrimSpace(r.out)
	}
	id := do(0, "shop_orders_", "task", "enqueue", "shop", "orders")
	for _, line := range []string{"info   one", "error  two"} {
		do(0, line, "task", "logs", "-f", id)
	}
	do(0, `"message":"one"`, "task", "logs", id, "-o", "jsonl")
	do(0, "SUCCESS", "task", "show", id)
	do(0, "It has succeeded", "task", "why", id)
	do(0, id, "task", "list", "shop", "--status", "success")
	do(4, "finished", "task", "cancel", id)
	do(4, "succeeded", "task", "retry", id)

	failed := do(0, "broken_orders_", "task", "enqueue", "broken", "orders", "--priority", "100")
	do(0, "oops", "task", "logs", "-f", failed)
	do(0, "FAILED", "task", "show", failed, "-o", "json")
	do(0, "broken_orders_", "task", "retry", failed)

	do(3, "no collection", "task", "enqueue", "shop", "nothing")
	do(2, "at least 1", "task", "enqueue", "shop", "orders", "--priority", "0")
	do(2, "status", "task", "list", "shop", "--status", "WAITING")
	for _, act := range []string{"show", "logs", "cancel", "retry", "why"} {
		do(3, "no task", "task", act, "nonsense")
	}

	do(0, "", "rule", "set", "pause", "shop", "WORKER", "mail")
	event := do(0, "-", "task", "emit", "shop", "WORKER", "mail", `{"to":"you"}`)
	do(0, "paused", "task", "why", event)
	do(0, `"state":"pause"`, "rule", "list", "shop", "--held", "-o", "jsonl")
	do(0, "", "rule", "clear", "pause", "shop", "WORKER", "mail")
	do(0, `{"to":"you"}`, "task", "show", event, "--canvas", "shop")
	do(0, event, "task", "events", "shop", "WORKER", "mail")
	do(3, "missing", "task", "emit", "shop", "WORKER", "nobody", "hello")
	do(2, "pause", "rule", "set", "stop", "shop", "WORKER", "mail")

	env = []string{env[0], "MILLRACE_TOKEN=wrong"}
	do(5, "MILLRACE_TOKEN", "task", "show", id)
}
