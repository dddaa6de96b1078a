package queue_test

import (
	"testing"
	"time"

	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/task"
)

// TestMeasures: a sweep says how long the oldest ready task waits, a look ahead how long what has fallen due does, and lost leases are
// counted.
func TestMeasures(t *testing.T) {
	b := setup(t)
	check := func(want queue.Measures) {
		t.Helper()
		if _, err := b.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := b.NotifyDue(t.Context(), b.clock.now()); err != nil {
			t.Fatal(err)
		}
		got := b.Measures()
		if got.OldestWait = got.OldestWait.Round(time.Second); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	check(queue.Measures{})
	b.enqueue(queue.New{Dialect: task.Job, Job: "/plain", Priority: 1})
	b.clock.advance(time.Minute)
	b.enqueue(queue.New{Dialect: task.Job, Job: "/plain", Priority: 5})
	check(queue.Measures{OldestWait: time.Minute})
	b.demandClaim(2, 2, "both are ready")
	b.clock.advance(time.Minute)
	check(queue.Measures{LeasesLost: 2}) // which ended them
	b.enqueue(queue.New{Dialect: task.Job, Job: "/plain", NotBefore: b.clock.now().Add(time.Hour)})
	b.clock.advance(time.Hour + 10*time.Second)
	if _, err := b.NotifyDue(t.Context(), b.clock.now()); err != nil || b.Measures().DueLag != 10*time.Second {
		t.Errorf("%+v, %v, want a lag of 10s", b.Measures(), err)
	}
}
