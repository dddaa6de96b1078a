package api_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store/memory"
)

// one is a set of definitions that does not change.
type one struct{ set *definition.Set }

func (o one) Current(context.Context) (*definition.Set, error) { return o.set, nil }
func (o one) Refresh(context.Context) (*definition.Set, error) { return o.set, nil }

// ordering returns an API for the orders of the chain /a/c over a real engine.
func ordering(t *testing.T) *bundle {
	t.Helper()
	set := one{&definition.Set{
		Jobs: []definition.Job{{Path: "/j", Target: definition.Target{Go: "f"}}},
		JobChains: []definition.JobChain{{Path: "/a/c", Nodes: []definition.Node{
			{ID: "A", Job: "/j"}, {ID: "B", Job: "/j"}, {ID: "end"},
		}}},
	}}
	s := memory.New(memory.Options{})
	j := journal.Open(s, journal.Options{Folds: projection.Folds()})
	t.Cleanup(func() { _ = j.Close() })
	e := order.Open(order.Options{Store: s, Definitions: set, Now: time.Now})
	e.Use(queue.Open(queue.Options{Store: s, Journal: j, Definitions: set, Now: time.Now, Steps: e}))
	return &bundle{api: api.New(api.Options{Tokens: tokens()}, api.Orders(e))}
}

// What each call responds, in turn.
func TestOrders(t *testing.T) {
	t.Parallel()
	b := ordering(t)
	const chain, orders = "/api/v1/chains/%2Fa%2Fc", "/api/v1/orders/%2Fa%2Fc"
	const viewer, producer, operator = access.Viewer, access.Producer, access.Operator
	for _, test := range []struct {
		role               access.Role
		method, path, body string
		status             int
		says               string
	}{
		{viewer, "POST", orders, `{"id":"1"}`, 403, ""},
		{"", "POST", orders, `{"id":"1"}`, 401, ""},
		{producer, "POST", orders, `{"id":"1","variables":{"v":[1,"x",true]}}`, 201, `{"TYPE":"OrderOverview","path":"/a/c,1","nodeId":"A","orderProcessingState":{"TYPE":"Due"},"obstacles":[],"version":1,"variables":{"v":[1,"x",true]}}`},
		{producer, "POST", orders, `{"id":"1"}`, 409, `"code":"conflict"`},
		{producer, "POST", orders, `{"id":"2","nodes":"A"}`, 400, `"location":"body.nodes"`},
		{producer, "POST", orders, `{"id":2}`, 400, `"location":"body.id"`},
		{producer, "POST", orders, `{"id":"2\u0001"}`, 400, `"location":"body.id","message":"want UTF-8 without control characters"`},
		{producer, "POST", orders, `{"id":"` + strings.Repeat("ü", 300) + `"}`, 400, `"location":"body.id"`},
		{producer, "POST", orders, `{"id":"2","priority":null}`, 400, `"location":"body.priority"`},
		{producer, "POST", orders, `{"id":"2","run_at":"tomorrow"}`, 400, `"location":"body.run_at"`},
		{producer, "POST", orders, `{"id":"2","replace":1}`, 400, `"location":"body.replace"`},
		{producer, "POST", orders, `{"id":"2","variables":{"a":{"b":1}}}`, 400, `"location":"body.variables.a"`},
		{producer, "POST", orders, `{"id":"2","node":"Z"}`, 422, `"location":"body.node"`},
		{producer, "POST", "/api/v1/orders/%2Fno", `{"id":"2"}`, 404, `"code":"not_found"`},
		{producer, "POST", orders, `{"id":"1","replace":true,"node":"B"}`, 201, `"nodeId":"B"`},
		{viewer, "GET", "/api/v1/orders/a%2Fc/1", ``, 200, `"nodeId":"B"`},
		{viewer, "GET", "/api/v1/orders/a/c/1", ``, 200, `"nodeId":"B"`},
		{viewer, "GET", orders + "/1/why", ``, 200, `"node":"B"`},
		{viewer, "GET", orders + "/none/why", ``, 404, ""},
		{viewer, "GET", orders + "/none", ``, 404, ""},
		{viewer, "POST", orders + "/1/suspend", ``, 403, ""},
		{operator, "POST", orders + "/1/suspend", `{"x":1}`, 400, `"location":"body.x","message":"is not known here; known are none"`},
		{operator, "POST", orders + "/1/suspend", `{}`, 204, ""},
		{operator, "POST", orders + "/1/suspend", ``, 409, ""},
		{operator, "POST", orders + "/1/resume", `{"variables":3}`, 400, `"location":"body.variables"`},
		{operator, "POST", orders + "/1/resume", `{"variables":{"w":1}}`, 204, ""},
		{viewer, "GET", orders + "/1", ``, 200, `"variables":{"w":1}`},
		{operator, "POST", orders + "/1/set-node", ``, 400, `"location":"body.node"`},
		{operator, "POST", orders + "/1/set-node", `{"node":"Z"}`, 422, `"location":"body.node"`},
		{operator, "POST", orders + "/1/set-node", `{"node":"A"}`, 204, ""},
		{operator, "POST", orders + "/1/set-node", `{"node":"A"}`, 409, ""},
		{operator, "POST", orders + "/1/run-now", ``, 409, ""},
		{operator, "POST", orders + "/1/skip", ``, 204, ""},
		{operator, "POST", orders + "/1/reset", ``, 409, ""},
		{operator, "POST", orders + "/1/set-node", `{"node":"A"}`, 204, ""},
		{operator, "POST", orders + "/1/reset", ``, 204, ""},
		{operator, "POST", chain + "/stop", ``, 204, ""},
		{viewer, "GET", "/api/v1/orders/a%2Fc/1", ``, 200, `"TYPE":"WaitingForResource"`},
		{viewer, "GET", orders + "/1/why", ``, 200, `"code":"chain_stopped"`},
		{operator, "POST", chain + "/start", ``, 204, ""},
		{operator, "POST", chain + "/start", ``, 409, ""},
		{operator, "POST", "/api/v1/chains/%2Fno/start", ``, 404, ""},
		{operator, "POST", chain + "/nodes/B/action", `{"action":"stop"}`, 204, ""},
		{operator, "POST", chain + "/nodes/B/action", `{"action":"stop"}`, 409, ""},
		{operator, "POST", chain + "/nodes/A/action", `{"action":"go"}`, 400, `"location":"body.action"`},
		{operator, "POST", chain + "/nodes/Z/action", `{"action":"stop"}`, 404, ""},
		{viewer, "GET", orders + "/1/why", ``, 200, `"code":"node_stopped"`},
		{operator, "DELETE", orders + "/1", ``, 204, ""},
		{operator, "DELETE", orders + "/1", ``, 404, ""},
	} {
		got := b.as(t, test.role, test.method, test.path, test.body)
		if got.StatusCode != test.status || !strings.Contains(got.body, test.says) {
			t.Errorf("%s %s %s: %d %s, want %d saying %s", test.method, test.path, test.body, got.StatusCode, got.body, test.status, test.says)
		}
	}
}

// A gateway may have unescaped the slashes of a chain's path.
func TestChainsUnescaped(t *testing.T) {
	t.Parallel()
	b := ordering(t)
	for _, test := range []struct {
		method, path, body string
		status             int
	}{
		{"POST", "/api/v1/orders//a/c", `{"id":"1"}`, 201},
		{"GET", "/api/v1/orders//a/c/1", "", 200},
		{"GET", "/api/v1/orders/a/c/1", "", 200},
		{"GET", "/api/v1/orders//a/c/1/why", "", 200},
		{"POST", "/api/v1/orders//a/c/1/suspend", "", 204},
		{"POST", "/api/v1/chains//a/c/stop", "", 204},
		{"POST", "/api/v1/chains//a/c/nodes/A/action", `{"action":"stop"}`, 204},
		{"DELETE", "/api/v1/orders//a/c/1", "", 204},
		{"GET", "/api/v1/orders//a/c/1", "", 404},
		{"GET", "/api/v1/orders//a", "", 405},
		{"POST", "/api/v1/orders//", "", 404},
		{"POST", "/api/v1/orders/a%2Fc/1/none", "", 404},  // a name that came escaped is whole
		{"POST", "/api/v1/orders/a/c", `{"id":"1"}`, 405}, // which may be the order c of /a too
	} {
		if got := b.as(t, access.Admin, test.method, test.path, test.body); got.StatusCode != test.status {
			t.Errorf("%s %s: %d %s, want %d", test.method, test.path, got.StatusCode, got.body, test.status)
		}
	}
}

// A request that is repeated with its Idempotency-Key adds one order.
func TestOrdersAreAddedOnce(t *testing.T) {
	t.Parallel()
	b := ordering(t)
	add := func(body string) reply {
		return b.as(t, access.Producer, "POST", "/api/v1/orders/%2Fa%2Fc", body, "Idempotency-Key", "k")
	}
	first, again := add(`{"id":"1"}`), add(`{"id":"1"}`)
	if first.StatusCode != 201 || again.StatusCode != 201 || first.body != again.body || again.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("%d %s, then %d %s", first.StatusCode, first.body, again.StatusCode, again.body)
	}
	if other := add(`{"id":"2"}`); other.StatusCode != 422 {
		t.Errorf("another body: %d %s", other.StatusCode, other.body)
	}
}
