package limit_test

import (
	"context"
	"fmt"

	"github.com/millrace/millrace/shared/limit"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
)

// At most two tasks of a queue run at once. A task takes a slot in the write that starts it, and gives it back in the write that ends
// it.
func Example() {
	ctx, s := context.Background(), memory.New(memory.Options{})
	limits := limit.New(s, false)
	var tokens int
	write := func(op store.Op) error {
		tokens++
		return s.Write(ctx, store.Write{Token: fmt.Sprint("write-", tokens), Ops: []store.Op{op}})
	}
	var running []limit.Slot
	for _, task := range []string{"first", "second", "third"} {
		taking := limits.Begin()
		if err := taking.Read(ctx, "queue/main"); err != nil {
			fmt.Println(err)
		}
		slots, missing := taking.Take(limit.Wanted{Limit: "queue/main", Most: 2})
		if missing != "" {
			fmt.Println(task, "waits for", missing)
			continue
		}
		slots[0].Holder = task
		fmt.Println(task, "takes slot", slots[0].Number, write(slots[0].Take()))
		running = append(running, slots...)
	}
	fmt.Println("the first ends", write(running[0].GiveBack()))
	taken, err := limits.Read(ctx, "queue/main")
	fmt.Println(taken.Count(), "runs", err)
	// Output:
	// first takes slot 0 <nil>
	// second takes slot 1 <nil>
	// third waits for queue/main
	// the first ends <nil>
	// 1 runs <nil>
}
