package cost_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/queue"
)

// A step costs what ends it, with the order's change and the task of the next one, and what claims that, one by one. The budget is 24.
func TestAStepOfAnOrderWith256BytesOfVariablesCosts17WCU(t *testing.T) {
	t.Parallel()
	m := setup(t)
	const chain = "/chain/of/four/steps" // with a path of six bytes an item has a kilobyte, or less, where a time ends in a zero
	d := &declared{definition.Set{
		Jobs: []definition.Job{{Path: job, Target: definition.Target{Go: "f"}}},
		JobChains: []definition.JobChain{{Path: chain, Nodes: []definition.Node{
			{ID: "1", Job: job}, {ID: "2", Job: job}, {ID: "3", Job: job}, {ID: "4", Job: job},
		}}},
	}}
	began := time.Now() // a process reads the state of a chain once a second
	e := order.Open(order.Options{Store: m.meter, Definitions: d, Now: func() time.Time { return began }})
	q := queue.Open(queue.Options{Store: m.meter, Journal: m.Journal, Definitions: d, Steps: e})
	e.Use(q)
	variables := []byte(`{"v":"` + strings.Repeat("x", 248) + `"}`)
	if _, err := e.Add(t.Context(), nil, order.Request{Chain: chain, ID: "1", Variables: variables}); err != nil {
		t.Fatal(err)
	}
	step := func(l queue.Lease) queue.Lease {
		t.Helper()
		if _, err := q.Complete(t.Context(), l.Token, queue.Result{Outcome: queue.OK}); err != nil {
			t.Fatal(err)
		}
		return claim(t, q)
	}
	l := step(claim(t, q)) // what a process does once is behind it
	m.meter.Reset()
	step(l)
	u := m.meter.Reset()
	got := map[string]int{
		"writes": u.Write.Calls, "tickets": u.Reserve.Calls, "WCU": u.Write.WCU + u.Reserve.WCU,
		"gets": u.Get.Calls, "queries": u.Query.Calls, "RCU": int(u.Total().RCU),
	}
	want := map[string]int{"writes": 3, "tickets": 2, "WCU": 17, "gets": 2, "queries": 4, "RCU": 6}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a step (-want +got):\n%s", diff)
	}
}

func claim(t *testing.T, q *queue.Queue) queue.Lease {
	t.Helper()
	leases, err := q.Claim(t.Context(), queue.Claimer{Instance: "worker"}, 1)
	if err != nil || len(leases) != 1 {
		t.Fatalf("Claim = %d leases, %v, want 1", len(leases), err)
	}
	return leases[0]
}
