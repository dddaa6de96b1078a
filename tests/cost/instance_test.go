package cost_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/exchanges"
	"github.com/millrace/millrace/shared/membership"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/task"
)

// A job of 256 bytes that an instance of capacity 1 runs by exchanges, each of which ends a job and claims the next: 7 units to add it, and
// in the exchange ticket, slot, the task that ends, the task that begins, the instance's place, its record, and the entry by itself.
func TestAJobOf256BytesByAnInstanceCosts19WCU(t *testing.T) {
	t.Parallel()
	m := setup(t)
	d := &declared{}
	members := membership.Open(membership.Options{Store: m.meter})
	q := queue.Open(queue.Options{Store: m.meter, Journal: m.Journal, Definitions: d, Heard: members.Heard})
	x := exchanges.Open(exchanges.Options{Store: m.meter, Members: members, Queue: q})
	i, err := members.Register(t.Context(), membership.New{Name: "w", Jobs: []string{"/topics/a"}, Capacity: 1})
	if err != nil {
		t.Fatal(err)
	}
	var results []queue.Completion
	next := func(seq int64) {
		t.Helper()
		n := queue.New{Dialect: task.Job, Job: "/topics/a", Payload: []byte(`"` + strings.Repeat("x", 254) + `"`)}
		if _, err := q.Enqueue(t.Context(), nil, n); err != nil {
			t.Fatal(err)
		}
		got, err := x.Exchange(t.Context(), i.ID, exchanges.Request{Seq: seq, Results: results, Max: 1})
		if err != nil || len(got.Claims) != 1 {
			t.Fatalf("exchange %d: %d claims, %v, want 1", seq, len(got.Claims), err)
		}
		results = []queue.Completion{{Token: got.Claims[0].Token, Result: queue.Result{Outcome: queue.OK}}}
	}
	next(1)
	next(2) // what a process does once is behind it
	m.meter.Reset()
	next(3)
	u := m.meter.Reset()
	got := written{u.Write.Calls, u.Reserve.Calls, u.Write.WCU + u.Reserve.WCU}
	if diff := cmp.Diff(written{Writes: 3, Tickets: 2, WCU: 19}, got); diff != "" {
		t.Errorf("a job (-want +got):\n%s", diff)
	}
	if rcu := u.Total().RCU; rcu > 7 {
		t.Errorf("a job reads for %v RCU, want at most 7", rcu)
	}
}
