//go:build unix

package worker_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/task"
	"github.com/millrace/millrace/shared/worker"
)

// step returns a lease of an order's step.
func step() queue.Lease {
	l := fresh()
	l.Task.Payload, l.Task.Order = json.RawMessage(`{"n":1}`), &task.Order{Chain: "/c", ID: "1", Node: "A"}
	return l
}

func TestACommandChangesVariables(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ script, want string }{
		"changes":  {`echo '{"n":2}' > $MILLRACE_VARIABLES`, `{"n":2}`},
		"nothing":  {``, `{"n":1}`},
		"a fault":  {`echo '{"n":3}' > $MILLRACE_VARIABLES; exit 4`, `{"n":3}`},
		"no file":  {`rm $MILLRACE_VARIABLES`, ``},
		"an empty": {`: > $MILLRACE_VARIABLES`, ``},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, l := newEngine(), step()
			got := only(t, e, commands(e, 0, worker.Command{}, "/bin/sh", "-c", "echo $MILLRACE_VARIABLES; "+test.script), l)
			if strings.TrimSpace(string(got.Variables)) != test.want {
				t.Errorf("variables %s, want %s", got.Variables, test.want)
			}
			file, is := strings.CutPrefix(e.messages(l.Token)[0], "info ")
			if !is || !strings.Contains(file, "millrace-variables") {
				t.Errorf("MILLRACE_VARIABLES is %q", file)
			}
			if _, err := os.Stat(file); !os.IsNotExist(err) {
				t.Errorf("the file is left: %v", err)
			}
		})
	}
	e, l := newEngine(), fresh()
	if only(t, e, commands(e, 0, worker.Command{}, "/bin/sh", "-c", "echo $MILLRACE_VARIABLES"), l); strings.Contains(e.messages(l.Token)[0], "variables") {
		t.Errorf("a task of no order has MILLRACE_VARIABLES: %q", e.messages(l.Token)[0])
	}
}

func TestAnAddressChangesVariables(t *testing.T) {
	t.Parallel()
	var sent string
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		sent = string(body)
		_, _ = io.WriteString(w, `{"rows":3,"variables":{"n":2}}`)
	})
	e, l := newEngine(), step()
	post(t, e, newHTTP(t, true), url, 0, l)
	got := e.results[l.Token]
	if len(got) != 1 || string(got[0].Variables) != `{"n":2}` || string(got[0].Output) != `{"rows":3,"variables":{"n":2}}` {
		t.Errorf("results %+v", got)
	}
	if !strings.Contains(sent, `"payload":{"n":1}`) || !strings.Contains(sent, `"order":{"path":"/c,1","nodeId":"A"}`) {
		t.Errorf("sent %s", sent)
	}
	e, l = newEngine(), fresh()
	post(t, e, newHTTP(t, true), url, 0, l)
	if got := e.results[l.Token]; len(got) != 1 || got[0].Variables != nil {
		t.Errorf("results of a task of no order: %+v", got)
	}
}
