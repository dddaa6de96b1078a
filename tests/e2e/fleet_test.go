package e2e_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/tests/containers"
	"github.com/millrace/millrace/tests/process"
)

// The variables that make these tests longer, say MILLRACE_TEST_FLEET=100000. Each kill is of one worker, at random.
const (
	fleetVariable       = "MILLRACE_TEST_FLEET"        // tasks on the embedded store
	sharedFleetVariable = "MILLRACE_TEST_FLEET_SHARED" // tasks on DynamoDB
)

// tasksPerKill is how many tasks end, on average, from one kill to the next.
const tasksPerKill = 200

// TestFleet lets ten worker processes run tasks of one server, and kills some of them with signal 9 all the while: each
// task that was acknowledged ends once and well, and nothing is held when all is done.
func TestFleet(t *testing.T) {
	t.Parallel()
	s := serve(t, embedded(t), declared(t, remoteHandler))
	sail(t, s, number(t, fleetVariable, 3000))
}

// TestSharedFleet is the same on DynamoDB and SQS.
func TestSharedFleet(t *testing.T) {
	t.Parallel()
	prefix, queue := tables(t), containers.Queue(t)
	patient := strings.Replace(remoteHandler, "lease: 1s", "lease: 5s", 1) // an emulator on a busy machine takes seconds for a heartbeat
	s := serve(t, "dynamodb:"+prefix, declared(t, patient), onLocalStack(t, "MILLRACE_BELL=sqs:"+queue))
	sail(t, s, number(t, sharedFleetVariable, 200))
}

// number returns what a variable says, or else what it is by default: less where tests are to be short.
func number(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" && testing.Short() {
		return otherwise / 4
	}
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%s, want a number of tasks", variable, text)
	}
	return n
}

// sail runs that many tasks on ten workers of which one is killed every now and then.
func sail(t *testing.T, s *process.Server, tasks int) {
	t.Helper()
	c := dial(t, s)
	l := keepLog(t, c)
	workers := make([]*worker, 10)
	for i := range workers {
		workers[i] = smallWorker(t)
		workers[i].start(t, s)
	}
	began := time.Now()
	asked := &acknowledged{ids: map[string]bool{}}
	var producers sync.WaitGroup
	for p := range 8 {
		producers.Go(func() { asked.emitShare(t, c, p, 8, tasks) })
	}
	kills := 0
	for goal := rand.N(tasksPerKill); goal < tasks; goal += 1 + rand.N(2*tasksPerKill) {
		l.await(t, c, goal)
		w := workers[rand.N(len(workers))]
		if err := w.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = w.Wait() // it was killed
		w.start(t, s)
		kills++
	}
	producers.Wait()
	l.await(t, c, tasks)
	elapsed := time.Since(began)
	for _, w := range workers {
		eventually(t, "the worker that was started last is there, and hears signals", func() bool { return w.registered(t, c) })
		w.drain(t)
	}
	again := l.judge(t, asked.ids)
	idle(t, c)
	t.Logf("%d tasks, %d kills, %d starts were repeated, %.0f tasks/s", tasks, kills, again, float64(tasks)/elapsed.Seconds())
}

// smallWorker runs next to nothing for each task.
func smallWorker(t *testing.T) *worker {
	t.Helper()
	nothing, err := exec.LookPath("true")
	if err != nil {
		t.Fatal(err)
	}
	return &worker{command: []string{os.Getenv(process.Variable), "worker", "--jobs", "/canvases/**", "--capacity", "4", "--", nothing}}
}

// registered reports whether a worker is one of the server's instances.
func (w *worker) registered(t *testing.T, c *client.Client) bool {
	t.Helper()
	for i, err := range c.Instances(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(i.Name, fmt.Sprintf("-%d", w.Process.Pid)) {
			return true
		}
	}
	return false
}

// emitShare emits one producer's share of so many tasks.
func (a *acknowledged) emitShare(t *testing.T, c *client.Client, producer, producers, tasks int) {
	handler := client.HandlerName{Canvas: "c", Space: "WORKER", Name: "h"}
	for n := producer; n < tasks; n += producers {
		e, err := c.EmitTo(t.Context(), handler, client.NewEvent{Value: []byte(strconv.Itoa(n))})
		if err != nil {
			t.Errorf("emit: %v", err)
			return
		}
		a.note(e.ID)
	}
}

// logbook is what a follower was told of tasks.
type logbook struct {
	mu     sync.Mutex
	lives  map[string]life
	failed int // tasks that did not end well
	closed int
	err    error
	news   chan struct{} // of capacity one
}

// keepLog follows the tasks until the test ends.
func keepLog(t *testing.T, c *client.Client) *logbook {
	l := &logbook{lives: map[string]life{}, news: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() {
		for step, err := range c.Follow(ctx, client.Query{Types: []string{"TaskEvent"}, Wait: time.Second}) {
			l.add(step, err)
		}
	})
	t.Cleanup(func() {
		cancel()
		group.Wait()
	})
	return l
}

func (l *logbook) add(step client.Step, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
	for i := range step.Events {
		e := &step.Events[i]
		one := l.lives[e.Key.TaskID]
		switch e.Type {
		case "TaskAdded":
			one.added++
		case "TaskStarted":
			one.started++
		case "TaskClosed":
			one.closed++
			l.closed++
			if string(e.Fields) != `"state":"succeeded"` {
				l.failed++
			}
		}
		l.lives[e.Key.TaskID] = one
	}
	select {
	case l.news <- struct{}{}:
	default:
	}
}

// await waits until so many tasks have ended.
func (l *logbook) await(t *testing.T, c *client.Client, tasks int) {
	t.Helper()
	const patience = 3 * time.Minute // without any task ending
	stuck := time.NewTimer(patience)
	defer stuck.Stop()
	for before := 0; ; {
		l.mu.Lock()
		closed, err := l.closed, l.err
		l.mu.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		if closed >= tasks {
			return
		}
		if closed > before {
			stuck.Reset(patience)
			before = closed
		}
		select {
		case <-l.news:
		case <-stuck.C:
			l.explain(t, c)
			t.Fatalf("%d tasks have ended, of %d, and for %v none more", closed, tasks, patience)
		}
	}
}

// explain says what the server knows of some of the tasks that have not ended.
func (l *logbook) explain(t *testing.T, c *client.Client) {
	t.Helper()
	l.mu.Lock()
	open := maps.Clone(l.lives)
	l.mu.Unlock()
	maps.DeleteFunc(open, func(_ string, one life) bool { return one.closed > 0 })
	most := 10
	for id, one := range open {
		if most--; most < 0 {
			return
		}
		job, err := c.Job(t.Context(), id)
		why, whyErr := c.Why(t.Context(), id)
		t.Logf("task %s: started %d times: %+v, %v; why: %+v, %v", id, one.started, job, err, why, whyErr)
	}
}

// judge checks that what was acknowledged is what happened, once, and returns how many starts were repeated.
func (l *logbook) judge(t *testing.T, acknowledged map[string]bool) (again int) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for id := range acknowledged {
		if one := l.lives[id]; one.added != 1 || one.closed != 1 || one.started < 1 {
			t.Errorf("task %s: added %d times, started %d, closed %d", id, one.added, one.started, one.closed)
		}
	}
	for _, one := range l.lives {
		again += one.started - 1
	}
	if len(l.lives) != len(acknowledged) || l.failed != 0 {
		t.Errorf("%d tasks on the journal, of %d acknowledged; %d failed", len(l.lives), len(acknowledged), l.failed)
	}
	return again
}

// idle checks that, as the server sees it, no instance runs anything.
func idle(t *testing.T, c *client.Client) {
	t.Helper()
	for i, err := range c.Instances(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if i.Running != 0 {
			t.Errorf("instance %s runs %d tasks, and there are none", i.Name, i.Running)
		}
	}
}
