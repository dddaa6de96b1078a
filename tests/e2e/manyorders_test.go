package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/tests/process"
)

const manyChains = `
jobs: [{path: /many/job, target: {instances: true}, attempts: 100}]
job_chains:
  - {path: /many/c, nodes: [{id: A, job: /many/job}, {id: B, job: /many/job}, {id: end}]}
  - {path: /many/fork, nodes: [{id: F, fork: {each: list, job: /many/job}}, {id: end}]}
`

// fewer is a number of orders, or a tenth of it where tests are to be short.
func fewer(n int) int {
	if testing.Short() {
		return n / 10
	}
	return n
}

// addOrders adds that many orders to the chain /many/c.
func addOrders(t *testing.T, c *client.Client, n int) {
	t.Helper()
	var adders sync.WaitGroup
	for from := range 64 {
		adders.Go(func() {
			for i := from; i < n; i += 64 {
				if _, err := c.AddOrder(t.Context(), client.NewOrder{Chain: "/many/c", ID: fmt.Sprint(i)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	adders.Wait()
}

// runSteps runs the steps of the job /many/job until the test ends.
func runSteps(t *testing.T, s *process.Server) {
	t.Helper()
	w := dial(t, s).Worker(client.WorkerOptions{
		Capacity: 1000, Drain: time.Second, OnError: func(error) {},
		Jobs: map[string]client.Function{"/many/job": func(context.Context, *client.Task) (any, error) { return nil, nil }},
	})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = w.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
}

// tally counts what the journal tells of orders: by type, "TYPE", of each order, "TYPE KEY", and the nodes that orders went to, "to NODE".
type tally struct {
	t     *testing.T
	c     *client.Client
	after event.ID
	n     map[string]int
}

// of reads on, and returns how often something has been told.
func (y *tally) of(what string) int {
	y.t.Helper()
	for {
		answer, err := y.c.Read(y.t.Context(), client.Query{Types: []string{"OrderEvent"}, After: y.after, Limit: 20_000})
		if err != nil {
			y.t.Fatal(err)
		}
		if len(answer.Events) == 0 {
			return y.n[what]
		}
		for _, e := range answer.Events {
			y.n[e.Type]++
			y.n[e.Type+" "+e.Key.Path]++
			if e.Type == "OrderNodeChanged" {
				var to struct{ NodeID string }
				if err := json.Unmarshal([]byte("{"+string(e.Fields)+"}"), &to); err != nil {
					y.t.Fatal(err)
				}
				y.n["to "+to.NodeID]++
			}
			y.after = e.ID
		}
	}
}

// reaches waits until something has been told so often.
func (y *tally) reaches(what string, n int) {
	y.t.Helper()
	eventually(y.t, fmt.Sprintf("%s is told %d times", what, n), func() bool { return y.of(what) >= n })
}

// is checks how often it has been told.
func (y *tally) is(what string, want int) {
	y.t.Helper()
	if n := y.of(what); n != want {
		y.t.Errorf("%s is told %d times, want %d", what, n, want)
	}
}

// again kills the server as a power cut would, and starts it.
func again(t *testing.T, s *process.Server) {
	t.Helper()
	if err := errors.Join(s.Kill(), s.Start(t.Context())); err != nil {
		t.Fatal(err)
	}
}

// TestManySuspendedOrdersResume: 10,000 suspended orders resume, each once, though the server is killed meanwhile; it says within what time.
func TestManySuspendedOrdersResume(t *testing.T) {
	n := fewer(10_000)
	s := serve(t, embedded(t), declared(t, manyChains))
	c := dial(t, s)
	addOrders(t, c, n)
	all := func(act string) (id string) {
		t.Helper()
		id, count, err := c.ActOnOrders(t.Context(), client.OrderAct{Kind: act}, client.OrderFilter{Path: "/many/"})
		if err != nil || count != n {
			t.Fatalf("%s selects %d orders, %v, want %d", act, count, err, n)
		}
		return id
	}
	done := func(id string) {
		t.Helper()
		b, err := c.WaitForAct(t.Context(), id)
		if err != nil || b.Done != n || b.Failed != 0 {
			t.Fatalf("the act is %+v, %v, want it done with %d orders", b, err, n)
		}
	}
	done(all("suspend"))
	began := time.Now()
	id := all("resume")
	for kill := range 3 {
		eventually(t, "some orders are resumed", func() bool {
			b, err := c.BulkAct(t.Context(), id)
			return err == nil && (b.Done >= (kill+1)*n/5 || b.State == "done")
		})
		again(t, s)
	}
	done(id)
	took := time.Since(began)
	told := tally{t: t, c: c, n: map[string]int{}}
	told.is("OrderSuspended", n)
	told.is("OrderResumed", n)
	t.Logf("%d orders were resumed within %v", n, took)
}

// TestAForkOfManyChildrenIsJoinedOnce: 10,000 children are counted once each, and the join fires once, though the server is killed meanwhile.
func TestAForkOfManyChildrenIsJoinedOnce(t *testing.T) {
	n := fewer(10_000)
	s := serve(t, embedded(t), declared(t, manyChains))
	c := dial(t, s)
	variables := json.RawMessage(`{"list":[0` + strings.Repeat(",0", n-1) + `]}`)
	if _, err := c.AddOrder(t.Context(), client.NewOrder{Chain: "/many/fork", ID: "1", Variables: variables}); err != nil {
		t.Fatal(err)
	}
	runSteps(t, s)
	told := tally{t: t, c: c, n: map[string]int{}}
	for kill := range 4 {
		told.reaches("OrderFinished", (kill+1)*n/6)
		again(t, s)
	}
	told.reaches("OrderFinished /many/fork,1", 1)
	told.is("OrderForked", 1)
	told.is("OrderAdded", n+1)
	told.is("OrderStarted", n)
	told.is("OrderFinished", n+1)
	told.is("OrderJoined", 1)
	for i := range n {
		if child := fmt.Sprintf("OrderFinished /many/fork,1!%d", i); told.n[child] != 1 {
			t.Errorf("%s is told %d times", child, told.n[child])
		}
	}
}

// TestNewDefinitionsDisturbNoOrderUnderWay: 1,000 orders end by the version of their chain that they began with, whose node B the new
// version has not, though the server is killed after the new one was applied. Those that begin later go by the new one.
func TestNewDefinitionsDisturbNoOrderUnderWay(t *testing.T) {
	n := fewer(1000)
	s := serve(t, embedded(t), declared(t, manyChains))
	c := dial(t, s)
	addOrders(t, c, n)
	if _, err := c.Apply(t.Context(), []byte(strings.Replace(manyChains, "{id: B, job: /many/job}", "{id: C, job: /many/job}", 1)), false); err != nil {
		t.Fatal(err)
	}
	if _, err := c.AddOrder(t.Context(), client.NewOrder{Chain: "/many/c", ID: "new"}); err != nil {
		t.Fatal(err)
	}
	runSteps(t, s)
	told := tally{t: t, c: c, n: map[string]int{}}
	told.reaches("OrderFinished", n/4)
	again(t, s)
	told.reaches("OrderFinished", n+1)
	told.is("to B", n)
	told.is("to C", 1)
	told.is("to end", n+1)
}
