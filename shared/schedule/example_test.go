package schedule_test

import (
	"context"
	"fmt"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/schedule"
	"github.com/millrace/millrace/shared/store/memory"
)

// constant is a set of definitions that never changes.
type constant struct{ *definition.Set }

// Current returns the set.
func (c constant) Current(context.Context) (*definition.Set, error) { return c.Set, nil }

// Ticks are made some time ahead, as tasks that wait; each is one task, even if several processes make it.
func Example() {
	ctx := context.Background()
	set, err := definition.Read("millrace.yaml", []byte(`
jobs: [{path: /report, target: {go: report}}]
schedules: [{name: nightly, cron: "0 0/20 2 * * ?", timezone: Europe/Berlin, job: /report}]
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	now := time.Date(2026, 3, 1, 0, 30, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	s := memory.New(memory.Options{})
	j := journal.Open(s, journal.Options{Now: clock, Folds: projection.Folds()})
	defer func() { _ = j.Close() }()
	tasks := queue.Open(queue.Options{Store: s, Journal: j, Definitions: constant{set}, Now: clock})
	schedules := schedule.Open(schedule.Options{Store: s, Journal: j, Queue: tasks, Definitions: constant{set}, Now: clock})

	if _, err := schedules.Make(ctx, now); err != nil { // the schedule begins now
		fmt.Println(err)
		return
	}
	for range 2 {
		made, err := schedules.Make(ctx, now.Add(time.Hour))
		fmt.Println(made.Ticks, "made, the next is at", made.Next.UTC().Format(time.TimeOnly), err)
	}
	status, err := schedules.Get(ctx, "nightly")
	fmt.Println(status.Words, err)
	// Output:
	// 2 made, the next is at 01:40:00 <nil>
	// 0 made, the next is at 01:40:00 <nil>
	// At 02:00, 02:20 and 02:40 every day <nil>
}
