package cost_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store/meter"
	"github.com/millrace/millrace/shared/task"
)

// declared is a set of definitions that costs nothing to look up.
type declared struct{ set definition.Set }

func (d *declared) Current(context.Context) (*definition.Set, error) { return &d.set, nil }

func (d *declared) Refresh(context.Context) (*definition.Set, error) { return &d.set, nil }

const job = "/job"

// engine is a task engine on DynamoDB whose cost is known.
type engine struct {
	*queue.Queue
	meter *meter.Meter
}

func setupTasks(t *testing.T) *engine {
	t.Helper()
	m := setup(t)
	target := definition.Target{Go: "f"}
	e := &engine{meter: m.meter, Queue: queue.Open(queue.Options{
		Store: m.meter, Journal: m.Journal,
		Definitions: &declared{definition.Set{Jobs: []definition.Job{{Path: job, Target: target}}}},
	})}
	e.run(t, 1) // what a process does once is behind it
	m.meter.Reset()
	return e
}

// run takes n tasks of 256 bytes from their enqueueing to their end, in batches of n.
func (e *engine) run(t *testing.T, n int) {
	t.Helper()
	news := make([]queue.New, n)
	for i := range news {
		news[i] = queue.New{Dialect: task.Event, Job: job, Payload: []byte(`"` + strings.Repeat("x", 254) + `"`)}
	}
	if _, err := e.Enqueue(t.Context(), nil, news...); err != nil {
		t.Fatal(err)
	}
	leases, err := e.Claim(t.Context(), queue.Claimer{Instance: "worker"}, n)
	if err != nil || len(leases) != n {
		t.Fatalf("Claim = %d leases, %v, want %d", len(leases), err, n)
	}
	done := make(chan error, n)
	for _, l := range leases {
		go func() {
			_, err := e.Complete(t.Context(), l.Token, queue.Result{Outcome: queue.OK})
			done <- err
		}()
	}
	for range n {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

// written is what writes cost, tickets included.
type written struct{ Writes, Tickets, WCU int }

func (e *engine) written() written {
	u := e.meter.Reset()
	return written{u.Write.Calls, u.Reserve.Calls, u.Write.WCU + u.Reserve.WCU}
}

// One by one: 7 to enqueue (ticket, task, ready entry, slot), 6 to claim (ticket, task with its lease, slot; the ready entry, removed by
// itself), 5 to complete (ticket, task, slot). Ten together share tickets and slots.
func TestATaskOf256BytesCosts18WCUFromEnqueueToEnd(t *testing.T) {
	t.Parallel()
	e := setupTasks(t)
	e.run(t, 1)
	if diff := cmp.Diff(written{Writes: 4, Tickets: 3, WCU: 18}, e.written()); diff != "" {
		t.Errorf("one task (-want +got):\n%s", diff)
	}
	e.run(t, 10)
	if got := e.written(); got.WCU > 110 {
		t.Errorf("ten tasks cost %+v, want at most 110 WCU", got)
	}
}
