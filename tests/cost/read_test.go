package cost_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/store/meter"
	"github.com/millrace/millrace/shared/task"
	"github.com/millrace/millrace/shared/upgrade"
)

// together is a store that other processes use too, as DynamoDB is: what is read does not depend on the backend.
type together struct{ store.Store }

// Exclusive returns false.
func (together) Exclusive() bool { return false }

// reads is what reads cost.
type reads struct {
	Gets, Queries int
	RCU           float64
}

// One by one, a claim reads what is due, the rules, the head of its line and the task, unless its process has added that just before; that of an
// instance its places too. Nothing else is read from the enqueueing to the end. Ten at once share all but the tasks.
func TestATaskOf256BytesCosts5RCUToRead(t *testing.T) {
	t.Parallel()
	for name, by := range map[string]queue.Claimer{
		"server":   {Instance: "worker", Queues: []string{definition.MainQueue}},
		"instance": {Instance: "i", Capacity: 20, Jobs: []string{"/far"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &metered{meter: meter.New(together{memory.New(memory.Options{})})}
			m.open(t, m.meter)
			process := func() *queue.Queue {
				return queue.Open(queue.Options{Store: m.meter, Journal: m.Journal, Definitions: &declared{definition.Set{
					Jobs: []definition.Job{{Path: job, Target: definition.Target{Go: "f"}}, {Path: "/far"}},
				}}})
			}
			adds, claims := process(), process()
			own := map[string]string{"server": job, "instance": "/far"}[name]
			places := map[string]int{"instance": 1}[name]
			live(t, adds, adds, by, own, 1) // what a process does once is behind it
			live(t, claims, claims, by, own, 1)
			for _, n := range []int{1, 10} {
				for claimer, gets := range map[*queue.Queue]int{adds: 0, claims: 1} {
					m.meter.Reset()
					live(t, adds, claimer, by, own, n)
					u := m.meter.Reset()
					got := reads{Gets: u.Get.Calls, Queries: u.Query.Calls, RCU: u.Total().RCU}
					want := reads{Gets: gets, Queries: 3 + places, RCU: float64(3 + places + gets*n)}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("%d at once, the claimer has added them: %v (-want +got):\n%s", n, claimer == adds, diff)
					}
				}
			}
		})
	}
}

// live takes n tasks of a job from their enqueueing in one process to their end in another, in batches of n.
func live(t *testing.T, adds, claims *queue.Queue, by queue.Claimer, job string, n int) {
	t.Helper()
	news := make([]queue.New, n)
	for i := range news {
		news[i] = queue.New{Dialect: task.Event, Job: job, Payload: []byte(`"x"`)}
	}
	if _, err := adds.Enqueue(t.Context(), nil, news...); err != nil {
		t.Fatal(err)
	}
	leases, err := claims.Claim(t.Context(), by, n)
	if err != nil || len(leases) != n {
		t.Fatalf("Claim = %d leases, %v, want %d", len(leases), err, n)
	}
	for _, l := range leases {
		if _, err := claims.Complete(t.Context(), l.Token, queue.Result{Outcome: queue.OK}); err != nil {
			t.Fatal(err)
		}
	}
}

// Every process and function asks for the layout when it starts, and never again.
func TestAStartCosts1RCU(t *testing.T) {
	t.Parallel()
	m := meter.New(together{memory.New(memory.Options{})})
	if _, err := upgrade.Check(t.Context(), m, journal.ShortRun); err != nil {
		t.Fatal(err)
	}
	m.Reset()
	if _, err := upgrade.Check(t.Context(), m, journal.ShortRun); err != nil {
		t.Fatal(err)
	}
	u := m.Reset()
	if got := (reads{u.Get.Calls, u.Query.Calls, u.Total().RCU}); got != (reads{Gets: 1, RCU: 1}) || u.Total().Calls != 1 {
		t.Errorf("a start costs %+v, want one read", u.Total())
	}
}
