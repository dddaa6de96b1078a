package fair_test

import (
	"context"
	"fmt"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/queue/fair"
	"github.com/millrace/millrace/shared/store/memory"
)

// The tasks of two customers take turns, although one of them comes when the other has many tasks that wait.
func Example() {
	ctx, turns := context.Background(), fair.New(memory.New(memory.Options{}), time.Now, true)
	queue := definition.Queue{Name: "fair", Type: definition.RoundRobin}
	many, err := turns.Take(ctx, queue, []string{"busy", "busy", "busy"})
	fmt.Println(many, err)
	one, err := turns.Take(ctx, queue, []string{"quiet", "busy"})
	fmt.Println(one, err)
	// Output:
	// [1 5041 10081] <nil>
	// [1 15121] <nil>
}
