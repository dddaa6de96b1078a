package queue_test

import (
	"context"
	"fmt"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/rule"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/task"
)

// constant is a set of definitions that never changes.
type constant struct{ *definition.Set }

// Current returns the set.
func (c constant) Current(context.Context) (*definition.Set, error) { return c.Set, nil }

// open opens an engine on a store in memory, with a clock of its own.
func open(declared string, clock func() time.Time) *queue.Queue {
	set, err := definition.Read("millrace.yaml", []byte(declared))
	if err != nil {
		panic(err)
	}
	s := memory.New(memory.Options{})
	j := journal.Open(s, journal.Options{Now: clock, Folds: projection.Folds()})
	return queue.Open(queue.Options{Store: s, Journal: j, Definitions: constant{set}, Now: clock})
}

// Tasks are started by priority. A task that fails is retried while it has attempts left.
func Example() {
	ctx, now := context.Background(), time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	q := open(`jobs: [{path: /mail, target: {go: mail}, attempts: 2, retry_delay: 5m}]`, func() time.Time { return now })
	for _, n := range []queue.New{
		{Dialect: task.Job, Job: "/mail", Payload: []byte(`"soon"`), Priority: 1},
		{Dialect: task.Job, Job: "/mail", Payload: []byte(`"at once"`), Priority: 9},
	} {
		if _, err := q.Enqueue(ctx, nil, n); err != nil {
			fmt.Println(err)
			return
		}
	}
	fail := true
	for {
		leases, err := q.Claim(ctx, queue.Claimer{Instance: "worker"}, 1)
		if err != nil || len(leases) == 0 {
			break
		}
		result := queue.Result{Outcome: queue.OK}
		if fail {
			result, fail = queue.Result{Outcome: queue.Failed, Message: "no luck"}, false
		}
		state, err := q.Complete(ctx, leases[0].Token, result)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(string(leases[0].Task.Payload), "attempt", leases[0].Task.Attempt, "is", state)
		now = now.Add(5 * time.Minute)
	}
	// Output:
	// "at once" attempt 1 is waiting
	// "at once" attempt 2 is succeeded
	// "soon" attempt 1 is succeeded
}

// Why returns in one sentence why a task is not running.
func ExampleQueue_Why() {
	ctx := context.Background()
	q := open(`jobs: [{path: /mail, target: {go: mail}}]`, time.Now)
	added, err := q.Enqueue(ctx, nil, queue.New{Dialect: task.Job, Job: "/mail"})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := q.SetRule(ctx, "/mail", rule.Pause, true); err != nil {
		fmt.Println(err)
		return
	}
	why, err := q.Why(ctx, added.Tasks[0].Task.ID)
	fmt.Println(why.Code, err)
	// Output: paused <nil>
}
