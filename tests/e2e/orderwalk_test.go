package e2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/tests/process"
)

// walked is the chain of the example of JobScheduler's event API, with jobs that a worker takes, and a chain elsewhere.
const walked = `
jobs:
  - {path: /aFolder/job, target: {instances: true}}
  - {path: /other/job, target: {instances: true}}
job_chains:
  - {path: /aFolder/test-ax, nodes: [{id: A, job: /aFolder/job}, {id: BB, job: /aFolder/job}, {id: end}]}
  - {path: /other/chain, nodes: [{id: X, job: /other/job}, {id: end}]}
`

// TestOrdersAreFollowed walks through the example of JobScheduler's event API with orders that a worker moves: a snapshot, and the
// events after it, by GET and by POST.
func TestOrdersAreFollowed(t *testing.T) {
	everywhere(t, followsOrders)
}

// object is a JSON object; numbers keep their digits.
type object = map[string]any

const journalAPI = "/jobscheduler/master/api/"

func followsOrders(t *testing.T, s *process.Server) {
	t.Helper()
	declare(t, s, walked)
	add(t, s, "/aFolder/test-ax", `{"id":"114"}`)
	add(t, s, "/aFolder/test-ax", `{"id":"117","variables":{"n":1}}`)
	add(t, s, "/other/chain", `{"id":"1"}`)

	snapshot := both(t, s, "order", "/aFolder/", "return=OrderOverview")
	stamp := snapshot["eventId"]
	due := object{"TYPE": "Due"}
	want := object{"eventId": stamp, "orders": []any{
		object{"TYPE": "OrderOverview", "path": "/aFolder/test-ax,114", "nodeId": "A", "orderProcessingState": due,
			"obstacles": []any{}, "version": json.Number("1"), "variables": object{}},
		object{"TYPE": "OrderOverview", "path": "/aFolder/test-ax,117", "nodeId": "A", "orderProcessingState": due,
			"obstacles": []any{}, "version": json.Number("1"), "variables": object{"n": json.Number("1")}},
	}}
	if diff := cmp.Diff(want, snapshot); diff != "" {
		t.Errorf("the snapshot (-want +got):\n%s", diff)
	}
	totals(t, s, map[string]string{"total": "3", "due": "3", "started": "0"})

	read := make(chan []any, 1) // what a follower reads while the worker works
	go func() {
		defer close(read)
		read <- finishing(t, s, fmt.Sprint(stamp), 2)
	}()
	tasks := moves(t, s, "/aFolder/*", 4)
	followed := <-read
	if len(followed) == 0 {
		t.Fatal("the follower read no events")
	}

	again := both(t, s, "order", "/aFolder/", fmt.Sprintf("return=Event&after=%s&timeout=60s", stamp))
	if again["TYPE"] != "NonEmpty" {
		t.Errorf("the events' TYPE is %v, want NonEmpty", again["TYPE"])
	}
	if diff := cmp.Diff(again["eventSnapshots"], any(followed)); diff != "" {
		t.Errorf("events read at once and while they came (-at once +followed):\n%s", diff)
	}
	for _, id := range []string{"114", "117"} {
		path := "/aFolder/test-ax," + id
		if diff := cmp.Diff(walkOf(path, tasks), timeless(of(followed, path))); diff != "" {
			t.Errorf("the events of %s (-want +got):\n%s", path, diff)
		}
	}
	afterwards(t, s, followed)
}

// afterwards checks what there is to read when the orders have gone through.
func afterwards(t *testing.T, s *process.Server, followed []any) {
	t.Helper()
	last := followed[len(followed)-1].(object)["eventId"]
	empty := both(t, s, "order", "/aFolder/", fmt.Sprintf("return=Event&after=%s&timeout=0", last))
	if empty["TYPE"] != "Empty" || empty["eventSnapshots"] != nil || empty["lastEventId"] == nil {
		t.Errorf("after the last event there is %v, want Empty with lastEventId", empty)
	}
	one := both(t, s, "order", "/aFolder/test-ax,117", "return=OrderFinished&after=0")["eventSnapshots"].([]any)
	if diff := cmp.Diff([]object{{"TYPE": "OrderFinished", "nodeId": "end"}}, timeless(one)); diff != "" {
		t.Errorf("the events of one object, without its key (-want +got):\n%s", diff)
	}
	if left := both(t, s, "order", "/aFolder/", "return=OrderOverview")["orders"]; len(left.([]any)) != 0 {
		t.Errorf("the folder still has %v, want no orders", left)
	}
	totals(t, s, map[string]string{"total": "1", "due": "1", "started": "0"})
}

// walkOf returns the events of an order after its addition, in JobScheduler's order; tasks are those of its steps by order and node.
func walkOf(path string, tasks map[string]string) []object {
	success := object{"TYPE": "Success"}
	return []object{
		{"key": path, "TYPE": "OrderStarted"},
		{"key": path, "TYPE": "OrderStepStarted", "nodeId": "A", "taskId": tasks[path+" A"]},
		{"key": path, "TYPE": "OrderStepEnded", "nodeTransition": success},
		{"key": path, "TYPE": "OrderNodeChanged", "fromNodeId": "A", "nodeId": "BB"},
		{"key": path, "TYPE": "OrderStepStarted", "nodeId": "BB", "taskId": tasks[path+" BB"]},
		{"key": path, "TYPE": "OrderStepEnded", "nodeTransition": success},
		{"key": path, "TYPE": "OrderNodeChanged", "fromNodeId": "BB", "nodeId": "end"},
		{"key": path, "TYPE": "OrderFinished", "nodeId": "end"},
	}
}

// add adds an order to a chain.
func add(t *testing.T, s *process.Server, chain, order string) {
	t.Helper()
	status, text := tell(t, s, "POST", "/api/v1/orders/"+strings.ReplaceAll(chain, "/", "%2F"), order)
	if status != http.StatusCreated {
		t.Fatalf("the order %s was not added: %d %s", order, status, text)
	}
}

// both asks for something of a path by GET and by POST, and returns the response, which must be the same but for the EventId of a
// sequence of events: that is the response's own.
func both(t *testing.T, s *process.Server, kind, path, query string) object {
	t.Helper()
	get := answered200(t, s, "GET", journalAPI+kind+path+"?"+query, "")
	post := answered200(t, s, "POST", journalAPI+kind+"?"+query, fmt.Sprintf(`{"path":%q}`, path))
	if get["TYPE"] != nil {
		get["eventId"] = post["eventId"]
	}
	if diff := cmp.Diff(get, post); diff != "" {
		t.Errorf("%s%s?%s differs (-GET +POST):\n%s", kind, path, query, diff)
	}
	return get
}

func answered200(t *testing.T, s *process.Server, method, path, body string) object {
	t.Helper()
	status, text := tell(t, s, method, path, body)
	var got object
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&got); err != nil || status != http.StatusOK {
		t.Errorf("%s %s: %d %s, %v", method, path, status, text, err)
		return object{}
	}
	return got
}

// totals checks some of the numbers of all orders.
func totals(t *testing.T, s *process.Server, want map[string]string) {
	t.Helper()
	all := both(t, s, "order", "/", "return=OrderStatisticsChanged&after=0")["eventSnapshots"].([]any)
	if len(all) != 1 || all[0].(object)["key"] != nil {
		t.Fatalf("got %v, want one event without a key", all)
	}
	numbers := all[0].(object)["orderStatistics"].(object)
	for name, n := range want {
		if numbers[name] != json.Number(n) {
			t.Errorf("orderStatistics.%s is %v, want %s", name, numbers[name], n)
		}
	}
}

// finishing follows the events of the folder until so many orders have finished, and returns the events. Each request goes on after
// the last event of the response before.
func finishing(t *testing.T, s *process.Server, after string, orders int) (all []any) {
	for method := range 1000 {
		path, body := "order?return=Event&timeout=60s&limit=5&after="+after, `{"path":"/aFolder/"}`
		var answer object
		if method%2 == 0 {
			answer = answered200(t, s, "GET", journalAPI+strings.Replace(path, "?", "/aFolder/?", 1), "")
		} else {
			answer = answered200(t, s, "POST", journalAPI+path, body)
		}
		if answer["TYPE"] != "NonEmpty" {
			t.Errorf("the follower got %v", answer)
			return all
		}
		events := answer["eventSnapshots"].([]any)
		all = append(all, events...)
		after = fmt.Sprint(events[len(events)-1].(object)["eventId"])
		for _, e := range events {
			if e.(object)["TYPE"] == "OrderFinished" {
				orders--
			}
		}
		if orders == 0 {
			return all
		}
	}
	return all
}

// moves is a worker of those jobs that does so many tasks, one by one. It returns their ids by order and node: "/CHAIN,ORDER NODE".
func moves(t *testing.T, s *process.Server, jobs string, n int) map[string]string {
	t.Helper()
	status, text := tell(t, s, "POST", "/api/v1/instances", fmt.Sprintf(`{"name":"w","jobs":[%q],"capacity":1}`, jobs))
	var instance struct{ ID string }
	if err := json.Unmarshal([]byte(text), &instance); err != nil || status != http.StatusCreated {
		t.Fatalf("no instance: %d %s, %v", status, text, err)
	}
	tasks := map[string]string{}
	for range n {
		_, text := tell(t, s, "POST", "/api/v1/instances/"+instance.ID+"/claims", `{"max":1,"wait":"60s"}`)
		var got struct {
			Claims []struct {
				ID, Token string
				Order     struct{ Path, NodeID string }
			}
		}
		if err := json.Unmarshal([]byte(text), &got); err != nil || len(got.Claims) != 1 {
			t.Fatalf("claims: %s, %v, want one", text, err)
		}
		claim := got.Claims[0]
		tasks[claim.Order.Path+" "+claim.Order.NodeID] = claim.ID
		if status, text := tell(t, s, "POST", "/api/v1/leases/"+claim.Token+"/complete", `{"result":"ok"}`); status != http.StatusOK {
			t.Fatalf("complete: %d %s", status, text)
		}
	}
	return tasks
}

// of returns the events of a key.
func of(events []any, key string) (some []any) {
	return slices.DeleteFunc(slices.Clone(events), func(e any) bool { return e.(object)["key"] != key })
}

// timeless returns events without their ids.
func timeless(events []any) []object {
	all := make([]object, len(events))
	for i, e := range events {
		all[i] = maps.Clone(e.(object))
		delete(all[i], "eventId")
	}
	return all
}
