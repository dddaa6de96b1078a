package api_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store/memory"
)

// chained is an API for orders of job chains and for jobs.
type chained struct {
	bundle
	orders  *order.Engine
	catalog *definition.Catalog
}

const twoChains = `
jobs: [{path: /j, target: {go: f}}]
job_chains:
  - {path: /a/c, nodes: [{id: A, job: /j}, {id: B, job: /j}, {id: end}]}
  - {path: /b/c, nodes: [{id: A, job: /j}, {id: end}]}
`

func chainedAPI(t *testing.T) *chained {
	t.Helper()
	s := memory.New(memory.Options{})
	j := journal.Open(s, journal.Options{Folds: projection.Folds()})
	t.Cleanup(func() { _ = j.Close() })
	c := &chained{catalog: definition.OpenCatalog(definition.CatalogOptions{Store: s, Journal: j})}
	c.orders = order.Open(order.Options{Store: s, Journal: j, Definitions: c.catalog})
	q := queue.Open(queue.Options{Store: s, Journal: j, Definitions: c.catalog, Steps: c.orders})
	t.Cleanup(func() { _ = q.Close() })
	c.orders.Use(q)
	c.declare(t, twoChains)
	c.api = api.New(api.Options{Tokens: tokens()}, api.Orders(c.orders), api.Acts(c.orders), api.Jobs(q, c.catalog))
	return c
}

func (c *chained) declare(t *testing.T, yaml string) {
	t.Helper()
	set, err := definition.Read("test", []byte(yaml))
	if err == nil {
		_, err = c.catalog.Apply(t.Context(), set, definition.FromFile)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// add adds orders to a chain.
func (c *chained) add(t *testing.T, chain string, ids ...string) {
	t.Helper()
	for _, id := range ids {
		r := c.as(t, access.Producer, "POST", "/api/v1/orders/"+chain, `{"id":"`+id+`"}`)
		if r.StatusCode != http.StatusCreated {
			t.Fatal(r.StatusCode, r.body)
		}
	}
}

// begun begins an act, has it done, and returns its path.
func (c *chained) begun(t *testing.T, path, body string, count int) string {
	t.Helper()
	began := into[struct {
		ID    string
		Count int
	}](t, c.as(t, access.Operator, "POST", path, body), http.StatusAccepted)
	if began.Count != count || began.ID == "" {
		t.Errorf("%s = %+v, want %d", body, began, count)
	}
	return "/api/v1/acts/" + began.ID
}

func (c *chained) sweep(t *testing.T) {
	t.Helper()
	if err := c.orders.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (c *chained) is(t *testing.T, path, act, state string, count, done, failed int) {
	t.Helper()
	want := fmt.Sprintf(`{"act":%q,"by":"operator","count":%d,"done":%d,"failed":%d,"state":%q}`, act, count, done, failed, state)
	if diff := cmp.Diff(want, c.as(t, access.Viewer, "GET", path, "").body); diff != "" {
		t.Error(diff)
	}
}

const ordersAct, jobsAct = "/api/v1/orders:act", "/api/v1/jobs:act"

func TestActsOnOrders(t *testing.T) {
	t.Parallel()
	c := chainedAPI(t)
	c.add(t, "a%2Fc", "1", "2")
	c.add(t, "b%2Fc", "1")
	if r := c.as(t, access.Operator, "POST", ordersAct, `{"act":"suspend","filter":{"path":"/a/"},"dry_run":true}`); r.StatusCode != 200 || r.body != `{"count":2}` {
		t.Error(r.StatusCode, r.body)
	}
	act := c.begun(t, ordersAct, `{"act":"suspend","filter":{"path":"/a/*|/none"}}`, 2)
	for _, step := range []string{"/stop", "/resume"} {
		if r := c.as(t, access.Operator, "POST", act+step, ""); r.StatusCode != http.StatusNoContent {
			t.Error(step, r.StatusCode, r.body)
		}
	}
	c.is(t, act, "suspend", "running", 2, 0, 0)
	c.sweep(t)
	c.is(t, act, "suspend", "done", 2, 2, 0)
	wantProblem(t, c.as(t, access.Operator, "POST", act+"/stop", ""), 409, api.CodeConflict)
	wantProblem(t, c.as(t, access.Viewer, "GET", "/api/v1/acts/none", ""), 404, api.CodeNotFound)
	wantProblem(t, c.as(t, access.Viewer, "POST", act+"/stop", ""), 403, api.CodeForbidden)
	wantProblem(t, c.as(t, access.Producer, "POST", ordersAct, `{}`), 403, api.CodeForbidden)

	act = c.begun(t, ordersAct, `{"act":"resume","filter":{"obstacle":"Suspended","node":"A","state":"NotPlanned"},"variables":{"v":1}}`, 2)
	c.sweep(t)
	c.is(t, act, "resume", "done", 2, 2, 0)
	act = c.begun(t, ordersAct, `{"act":"set-node","filter":{},"node":"B"}`, 3) // one has no B
	c.sweep(t)
	c.is(t, act, "set-node", "done", 3, 2, 1)
	act = c.begun(t, ordersAct, `{"act":"move","filter":{"path":"/a/c"},"version":7}`, 2)
	c.sweep(t)
	c.is(t, act, "move", "done", 2, 0, 2)
}

// An act that is repeated with its Idempotency-Key gets the first response again, and is done once; keys are scoped to the route and the
// token, and one that was refused or only counted keeps none.
func TestActsWithAKey(t *testing.T) {
	t.Parallel()
	c := chainedAPI(t)
	send := func(path, body string) reply {
		t.Helper()
		return c.as(t, access.Operator, "POST", path, body, "Idempotency-Key", "k")
	}
	const skip = `{"act":"skip","filter":{"path":"/a/c"}}`
	wantProblem(t, send(ordersAct, skip), 422, api.CodeImpossible)
	c.add(t, "a%2Fc", "1", "2")
	if r := send(ordersAct, `{"act":"skip","filter":{},"dry_run":true}`); r.StatusCode != 200 || r.body != `{"count":2}` {
		t.Error(r.StatusCode, r.body)
	}
	first := send(ordersAct, skip)
	if first.StatusCode != http.StatusAccepted || first.Header.Get("Idempotent-Replayed") != "" {
		t.Fatal(first.StatusCode, first.body)
	}
	c.sweep(t)
	if again := send(ordersAct, skip); again.StatusCode != http.StatusAccepted || again.body != first.body || again.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("again: %d %s, want %s", again.StatusCode, again.body, first.body)
	}
	c.sweep(t)
	for _, id := range []string{"1", "2"} {
		o := into[projection.OrderOverview](t, c.as(t, access.Viewer, "GET", "/api/v1/orders/a%2Fc/"+id, ""), http.StatusOK)
		if o.NodeID != "B" {
			t.Errorf("%s is at %s, want B: skipped once", id, o.NodeID)
		}
	}
	wantProblem(t, send(ordersAct, `{"act":"remove","filter":{}}`), 422, api.CodeMismatch, "header.Idempotency-Key")
	wantProblem(t, c.as(t, access.Operator, "POST", ordersAct, skip, "Idempotency-Key", "no key"), 400, api.CodeInvalid, "header.Idempotency-Key")

	c.as(t, access.Producer, "POST", jobsPath, `{"topic":"a/x"}`)
	first = send(jobsAct, `{"act":"remove","filter":{}}`)
	again := send(jobsAct, `{"act":"remove","filter":{}}`)
	if first.StatusCode != http.StatusAccepted || again.body != first.body || again.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("on jobs: %d %s, again %d %s", first.StatusCode, first.body, again.StatusCode, again.body)
	}
	wantProblem(t, send(jobsAct, `{"act":"stop","filter":{}}`), 422, api.CodeMismatch, "header.Idempotency-Key")
}

func TestActsThatAreRefused(t *testing.T) {
	t.Parallel()
	c := chainedAPI(t)
	c.add(t, "a%2Fc", "1")
	for body, want := range map[string]struct {
		status   int
		code     api.Code
		location string
	}{
		`{"filter":{}}`:                                         {400, api.CodeInvalid, "body.act"},
		`{"act":"jump","filter":{}}`:                            {400, api.CodeInvalid, "body.act"},
		`{"act":"skip"}`:                                        {400, api.CodeInvalid, "body.filter"},
		`{"act":"skip","filter":{"chain":"/a/c"}}`:              {400, api.CodeInvalid, "body.filter.chain"},
		`{"act":"skip","filter":{"path":"/a//c"}}`:              {400, api.CodeInvalid, "body.filter.path"},
		`{"act":"skip","filter":{"path":7}}`:                    {400, api.CodeInvalid, "body.filter.path"},
		`{"act":"skip","filter":{"path":""}}`:                   {400, api.CodeInvalid, "body.filter.path"},
		`{"act":"skip","filter":{"path":"a/"}}`:                 {400, api.CodeInvalid, "body.filter.path"},
		`{"act":"skip","filter":{"state":"due"}}`:               {400, api.CodeInvalid, "body.filter.state"},
		`{"act":"skip","filter":{"obstacle":"Rock"}}`:           {400, api.CodeInvalid, "body.filter.obstacle"},
		`{"act":"skip","filter":{},"node":"B"}`:                 {400, api.CodeInvalid, "body.node"},
		`{"act":"set-node","filter":{}}`:                        {400, api.CodeInvalid, "body.node"},
		`{"act":"move","filter":{},"version":0}`:                {400, api.CodeInvalid, "body.version"},
		`{"act":"resume","filter":{},"variables":{"v":null}}`:   {400, api.CodeInvalid, "body.variables.v"},
		`{"act":"suspend","filter":{},"variables":{"v":1}}`:     {400, api.CodeInvalid, "body.variables"},
		`{"act":"skip","filter":{"path":"/b/"}}`:                {422, api.CodeImpossible, "body.filter"},
		`{"act":"skip","filter":{"node":"B"}}`:                  {422, api.CodeImpossible, "body.filter"},
		`{"act":"resume","filter":{"obstacle":"Suspended"}}`:    {422, api.CodeImpossible, "body.filter"},
		`{"act":"skip","filter":{},"dry_run":"yes"}`:            {400, api.CodeInvalid, "body.dry_run"},
		`{"act":"skip","filter":{},"limit":0}`:                  {400, api.CodeInvalid, "body.limit"},
		`{"act":"skip","filter":{},"limit":"7"}`:                {400, api.CodeInvalid, "body.limit"},
		`{"act":"skip","filter":{},"per_second":0}`:             {400, api.CodeInvalid, "body.per_second"},
		`{"act":"skip","filter":{},"per_second":1001}`:          {400, api.CodeInvalid, "body.per_second"},
		`{"act":"skip","filter":{"state":"Due","node":"none"}}`: {422, api.CodeImpossible, "body.filter"},
	} {
		t.Run(body, func(t *testing.T) {
			wantProblem(t, c.as(t, access.Operator, "POST", ordersAct, body), want.status, want.code, want.location)
		})
	}
	for body, location := range map[string]string{
		`{"act":"skip","filter":{}}`:                     "body.act",
		`{"act":"stop","filter":{"topic":"a b"}}`:        "body.filter.topic",
		`{"act":"stop","filter":{"state":"OLD"}}`:        "body.filter.state",
		`{"act":"stop","filter":{"node":"A"}}`:           "body.filter.node",
		`{"act":"stop","filter":{},"variables":{"v":1}}`: "body.variables",
		`{"act":"stop","filter":{},"limit":-1}`:          "body.limit",
		`{"act":"stop","filter":{},"per_second":1.5}`:    "body.per_second",
		`{"act":"stop","filter":{"message":""}}`:         "body.filter.message",
	} {
		wantProblem(t, c.as(t, access.Operator, "POST", jobsAct, body), 400, api.CodeInvalid, location)
	}
	wantProblem(t, c.as(t, access.Operator, "POST", jobsAct, `{"act":"stop","filter":{}}`), 422, api.CodeImpossible, "body.filter")
	wantProblem(t, c.as(t, access.Operator, "POST", jobsAct, `{"act":"stop","filter":{"state":"GIVEN_UP"}}`), 422, api.CodeImpossible, "body.filter.state")
}

func TestActsOnJobsOfTopics(t *testing.T) {
	t.Parallel()
	c := chainedAPI(t)
	for _, topic := range []string{"a/x", "a/x", "b/y"} {
		if r := c.as(t, access.Producer, "POST", jobsPath, `{"topic":"`+topic+`"}`); r.StatusCode != http.StatusCreated {
			t.Fatal(r.StatusCode, r.body)
		}
	}
	act := c.begun(t, jobsAct, `{"act":"stop","filter":{"path":"/topics/a/"}}`, 2)
	c.sweep(t)
	c.is(t, act, "stop", "done", 2, 2, 0)
	act = c.begun(t, jobsAct, `{"act":"retry","filter":{"topic":"a/x","state":"STOPPED"}}`, 2)
	c.sweep(t)
	c.is(t, act, "retry", "done", 2, 2, 0)
	if r := c.as(t, access.Operator, "POST", jobsAct, `{"act":"remove","filter":{},"dry_run":true}`); r.body != `{"count":3}` {
		t.Error(r.body)
	}
}

// Some jobs are acted on, so many a second, and those that failed in one way.
func TestActsOnSomeJobs(t *testing.T) {
	t.Parallel()
	c := chainedAPI(t)
	for range 3 {
		c.as(t, access.Producer, "POST", jobsPath, `{"topic":"a/x"}`)
	}
	if r := c.as(t, access.Operator, "POST", jobsAct, `{"act":"stop","filter":{},"limit":2,"per_second":1,"dry_run":true}`); r.body != `{"count":2}` {
		t.Error(r.body)
	}
	act := c.begun(t, jobsAct, `{"act":"stop","filter":{},"limit":2,"per_second":1000}`, 2)
	c.sweep(t)
	want := `{"act":"stop","by":"operator","count":2,"done":2,"failed":0,"state":"done","per_second":1000}`
	if got := c.as(t, access.Viewer, "GET", act, "").body; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	wantProblem(t, c.as(t, access.Operator, "POST", jobsAct, `{"act":"retry","filter":{"state":"STOPPED","message":"no such message"}}`), 422, api.CodeImpossible, "body.filter")
}

func TestAnOrderIsMoved(t *testing.T) {
	t.Parallel()
	c := chainedAPI(t)
	c.add(t, "a%2Fc", "1")
	const move = "/api/v1/orders/a%2Fc/1/move"
	wantProblem(t, c.as(t, access.Operator, "POST", move, ""), 409, api.CodeConflict)
	wantProblem(t, c.as(t, access.Operator, "POST", move, `{"version":2}`), 422, api.CodeImpossible, "body.version")
	wantProblem(t, c.as(t, access.Operator, "POST", move, `{"version":"2"}`), 400, api.CodeInvalid, "body.version")
	wantProblem(t, c.as(t, access.Operator, "POST", "/api/v1/orders/a%2Fc/none/move", ""), 404, api.CodeNotFound)
	wantProblem(t, c.as(t, access.Producer, "POST", move, ""), 403, api.CodeForbidden)
	c.declare(t, `{jobs: [{path: /j, target: {go: f}}], job_chains: [{path: /a/c, nodes: [{id: B, job: /j}, {id: end}]}]}`)
	wantProblem(t, c.as(t, access.Operator, "POST", move, ""), 422, api.CodeImpossible, "body.version")
	c.declare(t, `{jobs: [{path: /j, target: {go: f}}], job_chains: [{path: /a/c, nodes: [{id: A, job: /j}, {id: end}]}]}`)
	if r := c.as(t, access.Operator, "POST", move, "{}"); r.StatusCode != http.StatusNoContent {
		t.Error(r.StatusCode, r.body)
	}
	if o := into[projection.OrderOverview](t, c.as(t, access.Viewer, "GET", "/api/v1/orders/a%2Fc/1", ""), 200); o.Version != 2 || o.NodeID != "A" {
		t.Errorf("%+v", o)
	}
}
