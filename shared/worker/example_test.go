package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/notifier/local"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/worker"
)

func Example() {
	ctx, end := context.WithCancel(context.Background())
	defer end()
	set := definitions{&definition.Set{Jobs: []definition.Job{{Path: "/greet", Target: definition.Target{Go: "greet"}}}}}
	memory, notifier := memory.New(memory.Options{}), local.New()
	engine := queue.Open(queue.Options{
		Store: memory, Journal: journal.Open(memory, journal.Options{Folds: projection.Folds()}), Definitions: set, Notifier: notifier,
	})
	greet := func(_ context.Context, a *worker.Attempt, _ *worker.Log) (json.RawMessage, error) {
		fmt.Printf("attempt %d: hello %s\n", a.Number, a.Payload)
		end() // the pool lets this task end
		return nil, nil
	}
	pool := worker.NewPool(worker.PoolOptions{Notifier: notifier, Runner: worker.NewRunner(worker.Options{
		Engine: engine, Definitions: set, Targets: worker.Targets{Go: worker.Functions{"greet": greet}},
	})})
	added, err := engine.Enqueue(ctx, nil, queue.New{Job: "/greet", Payload: json.RawMessage(`"Ada"`)})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := pool.Run(ctx); err != nil {
		fmt.Println(err)
	}
	task, err := engine.Get(context.Background(), added.Tasks[0].Task.ID)
	fmt.Println(task.State, err)
	// Output:
	// attempt 1: hello "Ada"
	// succeeded <nil>
}

func ExampleFail() {
	var imported worker.Function = func(context.Context, *worker.Attempt, *worker.Log) (json.RawMessage, error) {
		return nil, worker.Fail(errors.New("the file is not there yet"), time.Minute)
	}
	_, err := imported(context.Background(), nil, nil)
	fmt.Println(err)
	// Output: the file is not there yet
}

func ExampleReject() {
	fmt.Println(worker.Reject(errors.New("no such customer")))
	// Output: no such customer
}
