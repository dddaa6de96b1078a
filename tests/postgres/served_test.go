package postgres_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/tests/process"
)

// serve starts a server on a store, which ends with the test.
func serve(t *testing.T, store string, env ...string) *process.Server {
	t.Helper()
	s := &process.Server{Binary: os.Getenv(process.Variable), Store: store, Token: "token", Env: append(env, "MILLRACE_DRAIN=1m")}
	return s.Serve(t)
}

// command runs millrace, and returns what it prints.
func command(t *testing.T, arguments ...string) (printed string, err error) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), os.Getenv(process.Variable), arguments...).CombinedOutput()
	return string(out), err
}

// makeTables makes the tables as a user does.
func makeTables(t *testing.T, url string) {
	t.Helper()
	if out, err := command(t, "tables", "--store", url); err != nil {
		t.Fatalf("millrace tables: %v: %s", err, out)
	}
}

func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !so(); {
		if time.Now().After(deadline) {
			t.Fatalf("after two minutes it is not so that %s", what)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// work has a worker run the jobs of the topic w until the test ends.
func work(t *testing.T, c *client.Client) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	worker := c.Worker(client.WorkerOptions{Name: "worker", Capacity: 8, Jobs: map[string]client.Function{
		"/topics/w": func(context.Context, *client.Task) (any, error) { return nil, nil },
	}})
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("the worker ended with %v", err)
		}
	})
}

// life is how often the journal tells something of a task.
type life struct{ added, closed int }

// observer follows the journal, and counts what it tells.
type observer struct {
	mu     sync.Mutex
	tasks  map[string]life
	events map[string]int // by key, those of [made]
	last   event.ID
	fell   int // ids that are not above the one before
}

// observe follows the journal from its beginning until the test ends.
func observe(t *testing.T, c *client.Client) *observer {
	t.Helper()
	o := &observer{tasks: map[string]life{}, events: map[string]int{}}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for step, err := range c.Follow(ctx, client.Query{Wait: time.Second}) {
			if err != nil && ctx.Err() == nil {
				t.Errorf("the follower ended: %v", err)
			}
			o.take(step.Events)
		}
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return o
}

func (o *observer) take(events []event.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range events {
		if e.ID <= o.last {
			o.fell++
		}
		o.last = e.ID
		l := o.tasks[e.Key.TaskID]
		switch e.Type {
		case "TaskAdded":
			l.added++
		case "TaskClosed":
			l.closed++
		case "Made":
			o.events[e.Key.Path]++
			continue
		default:
			continue
		}
		o.tasks[e.Key.TaskID] = l
	}
}

// saw reports whether the follower saw that all tasks have ended, and all events.
func (o *observer) saw(tasks, keys []string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, id := range tasks {
		if o.tasks[id].closed == 0 {
			return false
		}
	}
	for _, key := range keys {
		if o.events[key] == 0 {
			return false
		}
	}
	return true
}

// once checks that the journal tells nothing twice, and of tasks in the order of ids.
func (o *observer) once(t *testing.T) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	for id, l := range o.tasks {
		if l.added != 1 || l.closed > 1 {
			t.Errorf("task %s was added %d times, and closed %d times", id, l.added, l.closed)
		}
	}
	for key, n := range o.events {
		if n != 1 {
			t.Errorf("the event of %s is there %d times", key, n)
		}
	}
	if o.fell > 0 {
		t.Errorf("%d ids are not above the one before", o.fell)
	}
}
