package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/tests/process"
)

// eventful is a chain whose order takes nearly every turn: a range of return codes, setbacks up to the last, a fork, a question, an
// error that suspends it.
const eventful = `
jobs:
  - {path: /ok, target: {command: [sh, -c, "true"]}}
  - {path: /seven, target: {command: [sh, -c, "exit 7"]}}
  - path: /fails
    target: {command: [sh, -c, "exit 8"]}
    delay_order_after_setback: [{setback_count: 1, delay: 1ms}, {setback_count: 2, delay: 1ms, is_maximum: true}]
job_chains:
  - path: /eventful
    nodes:
      - {id: ok, job: /ok, next: range}
      - {id: range, job: /seven, on: {"7..9": back}, error: bad}
      - {id: back, job: /fails, on_error: setback, error: fork}
      - {id: fork, fork: {branches: {a: [{job: /ok}], b: [{job: /ok}, {job: /ok}]}}, join: all, next: ask, error: bad}
      - {id: ask, prompt: {role: operator, answers: {yes: keep, no: bad}}}
      - {id: keep, job: /fails, on_error: suspend, next: end}
      - {id: end}
      - {id: bad}
`

// TestTheSameEventsOnBothStores: an order of one chain makes the same events on the embedded store and on DynamoDB.
func TestTheSameEventsOnBothStores(t *testing.T) {
	t.Parallel()
	one := story(t, serve(t, embedded(t), declared(t, eventful)))
	other := story(t, serve(t, "dynamodb:"+tables(t), onLocalStack(t), declared(t, eventful)))
	if diff := cmp.Diff(one, other); diff != "" {
		t.Errorf("the events differ (-embedded +DynamoDB):\n%s", diff)
	}
	var types []string
	for _, e := range one["/eventful,1"] {
		types = append(types, e["TYPE"].(string))
	}
	want := "OrderAdded OrderStarted" + strings.Repeat(" OrderStepStarted OrderStepEnded OrderNodeChanged", 2) +
		strings.Repeat(" OrderStepStarted OrderStepEnded OrderSetBack", 2) + " OrderStepStarted OrderStepEnded OrderNodeChanged" +
		" OrderForked OrderJoined OrderNodeChanged OrderPrompted OrderAnswered OrderNodeChanged" +
		" OrderStepStarted OrderStepEnded OrderSuspended" +
		" OrderSuspended OrderNodeChanged OrderResumed OrderFinished" // skipped to its end while suspended it is blacklisted, until it is resumed
	if diff := cmp.Diff(strings.Fields(want), types); diff != "" {
		t.Errorf("the order's events (-want +got):\n%s", diff)
	}
}

// story leads an order along the chain and returns the events of it and its children, by order, without ids and times.
func story(t *testing.T, s *process.Server) map[string][]object {
	t.Helper()
	const order = "/api/v1/orders/%2Feventful/1"
	add(t, s, "/eventful", `{"id":"1"}`)
	eventually(t, "somebody is asked", func() bool { return shows(t, s, order, `"TYPE":"Prompt"`) })
	act(t, s, order+"/answer", `{"answer":"yes","comment":"fine"}`)
	eventually(t, "the order is suspended", func() bool { return shows(t, s, order, `"TYPE":"Suspended"`) })
	act(t, s, order+"/skip", "")
	act(t, s, order+"/resume", "")
	all := answered200(t, s, "GET", journalAPI+"order/?return=Event&after=0", "")["eventSnapshots"].([]any)
	told := map[string][]object{}
	for _, e := range timeless(all) {
		for _, changing := range []string{"taskId", "until", "deadline"} {
			if e[changing] != nil {
				e[changing] = ""
			}
		}
		told[e["key"].(string)] = append(told[e["key"].(string)], e)
	}
	return told
}

func shows(t *testing.T, s *process.Server, order, what string) bool {
	t.Helper()
	status, text := tell(t, s, "GET", order, "")
	if status != http.StatusOK || !json.Valid([]byte(text)) {
		t.Fatal(fmt.Sprint("the order is gone: ", status, text))
	}
	return strings.Contains(text, what)
}

func act(t *testing.T, s *process.Server, path, body string) {
	t.Helper()
	if status, text := tell(t, s, "POST", path, body); status != http.StatusNoContent {
		t.Fatalf("POST %s: %d %s", path, status, text)
	}
}
