package e2e_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/tests/process"
)

// walk is a chain whose first step reads and changes the order's variables, and whose second sees that.
const walk = `
jobs:
  - {path: /first, target: {command: [sh, -c, "grep -q '\"n\":1' $MILLRACE_VARIABLES && echo '{\"n\":2,\"said\":[\"a\",true]}' > $MILLRACE_VARIABLES"]}}
  - {path: /second, target: {command: [sh, -c, "grep -q '\"n\":2' $MILLRACE_VARIABLES"]}}
job_chains:
  - {path: /aFolder/test-ax, nodes: [{id: A, job: /first, error: bad}, {id: BB, job: /second, next: end, error: bad}, {id: end}, {id: bad}]}
`

// TestAnOrderWalks: an order goes along its chain, and what it does is on the journal in JobScheduler's order.
func TestAnOrderWalks(t *testing.T) {
	t.Parallel()
	walks(t, embedded(t))
}

// TestAnOrderWalksOnDynamoDB is the same on a store that processes share.
func TestAnOrderWalksOnDynamoDB(t *testing.T) {
	t.Parallel()
	walks(t, "dynamodb:"+tables(t), onLocalStack(t))
}

func walks(t *testing.T, store string, change ...func(*process.Server)) {
	t.Helper()
	file := write(t, "millrace.yaml", walk)
	s := serve(t, store, append(change, func(s *process.Server) { s.Env = append(s.Env, "MILLRACE_CONFIG="+file) })...)
	const orders, events = "/api/v1/orders/", "/jobscheduler/master/api/order/aFolder/?return=Event&after=0&timeout=0"
	status, made := tell(t, s, "POST", orders+"%2FaFolder%2Ftest-ax", `{"id":"117","variables":{"n":1}}`)
	if status != http.StatusCreated || !strings.Contains(made, `"path":"/aFolder/test-ax,117"`) {
		t.Fatalf("the order was not added: %d %s", status, made)
	}
	var answer struct{ EventSnapshots []map[string]any }
	eventually(t, "the order is finished", func() bool {
		_, text := tell(t, s, "GET", events, "")
		answer.EventSnapshots = nil
		if err := json.Unmarshal([]byte(text), &answer); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		n := len(answer.EventSnapshots)
		return n > 0 && answer.EventSnapshots[n-1]["TYPE"] == "OrderFinished"
	})
	for _, e := range answer.EventSnapshots {
		for _, volatile := range []string{"eventId", "taskId"} {
			if _, is := e[volatile]; is {
				e[volatile] = ""
			}
		}
	}
	const key = "/aFolder/test-ax,117"
	success := map[string]any{"TYPE": "Success"}
	after := map[string]any{"n": 2.0, "said": []any{"a", true}}
	want := []map[string]any{
		{"eventId": "", "key": key, "TYPE": "OrderAdded", "nodeId": "A", "version": 1.0, "variables": map[string]any{"n": 1.0}},
		{"eventId": "", "key": key, "TYPE": "OrderStarted"},
		{"eventId": "", "key": key, "TYPE": "OrderStepStarted", "nodeId": "A", "taskId": ""},
		{"eventId": "", "key": key, "TYPE": "OrderStepEnded", "nodeTransition": success, "variables": after},
		{"eventId": "", "key": key, "TYPE": "OrderNodeChanged", "fromNodeId": "A", "nodeId": "BB"},
		{"eventId": "", "key": key, "TYPE": "OrderStepStarted", "nodeId": "BB", "taskId": ""},
		{"eventId": "", "key": key, "TYPE": "OrderStepEnded", "nodeTransition": success},
		{"eventId": "", "key": key, "TYPE": "OrderNodeChanged", "fromNodeId": "BB", "nodeId": "end"},
		{"eventId": "", "key": key, "TYPE": "OrderFinished", "nodeId": "end"},
	}
	if diff := cmp.Diff(want, answer.EventSnapshots); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	for _, test := range []struct {
		name, method, path, body string
		status                   int
		says                     string
	}{
		{"finished", "GET", "%2FaFolder%2Ftest-ax/117", "", 404, "no such order"},
		{"no such chain", "POST", "%2Fnone", `{"id":"1"}`, 404, "no such job chain"},
		{"no such node", "POST", "aFolder%2Ftest-ax", `{"id":"1","node":"x"}`, 422, `"location":"body.node"`},
		{"no such end", "POST", "aFolder%2Ftest-ax", `{"id":"1","end_node":"x"}`, 422, `"location":"body.end_node"`},
		{"no id", "POST", "aFolder%2Ftest-ax", `{}`, 400, `"location":"body.id"`},
		{"an object", "POST", "aFolder%2Ftest-ax", `{"id":"1","variables":{"v":{}}}`, 400, `"location":"body.variables.v"`},
		{"too much", "POST", "aFolder%2Ftest-ax", `{"id":"1","variables":{"v":"` + strings.Repeat("x", 70_000) + `"}}`, 413, `"location":"body.variables"`},
		{"later", "POST", "aFolder%2Ftest-ax", `{"id":"1","run_at":"2100-01-01T00:00:00Z"}`, 201, `"TYPE":"Planned"`},
		{"twice", "POST", "aFolder%2Ftest-ax", `{"id":"1"}`, 409, "with this id"},
		{"why", "GET", "aFolder%2Ftest-ax/1/why", "", 200, "order_planned"},
		{"suspend", "POST", "aFolder%2Ftest-ax/1/suspend", "", 204, ""},
		{"suspend twice", "POST", "aFolder%2Ftest-ax/1/suspend", "", 409, "suspended already"},
		{"resume with null", "POST", "aFolder%2Ftest-ax/1/resume", `{"variables":{"v":null}}`, 400, "body.variables.v"},
		{"set-node without a node", "POST", "aFolder%2Ftest-ax/1/set-node", `{}`, 400, "body.node"},
		{"set-node to none", "POST", "aFolder%2Ftest-ax/1/set-node", `{"node":"x"}`, 422, "body.node"},
		{"shown", "GET", "aFolder%2Ftest-ax/1", "", 200, `"obstacles":[{"TYPE":"Suspended"}]`},
		{"removed", "DELETE", "aFolder%2Ftest-ax/1", "", 204, ""},
		{"removed twice", "DELETE", "aFolder%2Ftest-ax/1", "", 404, "no such order"},
		{"stopped", "POST", "../chains/aFolder%2Ftest-ax/stop", "", 204, ""},
		{"stopped twice", "POST", "../chains/aFolder%2Ftest-ax/stop", "", 409, "stopped already"},
		{"waits", "POST", "aFolder%2Ftest-ax", `{"id":"2"}`, 201, `"TYPE":"WaitingForResource"`},
		{"no such action", "POST", "../chains/aFolder%2Ftest-ax/nodes/A/action", `{"action":"x"}`, 400, "body.action"},
		{"an action", "POST", "../chains/aFolder%2Ftest-ax/nodes/A/action", `{"action":"next_state"}`, 204, ""},
		{"no node", "POST", "../chains/aFolder%2Ftest-ax/nodes/x/action", `{"action":"stop"}`, 404, "no node"},
	} {
		path := strings.Replace(orders+test.path, "orders/../", "", 1)
		if status, text := tell(t, s, test.method, path, test.body); status != test.status || !strings.Contains(text, test.says) {
			t.Errorf("%s: %d %s, want %d saying %s", test.name, status, text, test.status, test.says)
		}
	}
}

// tell sends a request and returns the status and the text of the response.
func tell(t *testing.T, s *process.Server, method, path, body string) (status int, text string) {
	t.Helper()
	response, err := process.Client.Do(newRequest(t, s, method, path, body))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	read, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(read)
}
