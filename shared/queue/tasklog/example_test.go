package tasklog_test

import (
	"context"
	"fmt"
	"time"

	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/queue/tasklog"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/task"
)

// A heartbeat appends lines, and whoever reads goes on at the cursor.
func Example() {
	ctx, now := context.Background(), time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	s, t := memory.New(memory.Options{}), task.Task{ID: "0197c6a0-0000-7000-8000-000000000000", Attempt: 1, State: task.Running}
	lease := layout.Lease{UUID: t.ID.UUID()}
	held := layout.Held{Lease: lease, Task: t, TaskVersion: 5, Version: 1}
	ops, err := tasklog.Append(&held, &lease, []tasklog.Line{{Message: "begun"}, {Level: "warn", Message: "slow"}}, now)
	fmt.Println(err, s.Write(ctx, store.Write{Token: "beat", Ops: ops}))
	for page := (tasklog.Page{More: true}); page.More; {
		if page, err = tasklog.Read(ctx, s, &t, tasklog.Query{After: page.Cursor, Limit: 1}); err != nil {
			fmt.Println(err)
		}
		for _, line := range page.Lines {
			fmt.Println(line.Level, line.Message)
		}
	}
	// Output:
	// <nil> <nil>
	// info begun
	// warn slow
}
