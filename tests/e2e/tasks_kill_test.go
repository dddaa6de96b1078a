package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/tests/process"
)

// declared configures a server with these definitions.
func declared(t *testing.T, definitions string) func(*process.Server) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "millrace.yaml")
	if err := os.WriteFile(path, []byte(definitions), 0o600); err != nil {
		t.Fatal(err)
	}
	return func(s *process.Server) { s.Env = append(s.Env, "MILLRACE_CONFIG="+path) }
}

const killed = `
lease: 1s
sources:
  s: {target: {command: [sh, -c, "exec cat >/dev/null"]}, collections: [{name: a}, {name: b}, {name: c}]}
handlers:
  - {canvas: c, space: WORKER, name: h, target: {command: [sh, -c, "exec cat >/dev/null"]}, attempts: 12, retry_delay: 50ms}
`

// TestKillWhileTasksRun kills the server with signal 9 again and again while tasks are enqueued and run: each one that was
// acknowledged ends exactly once, starts at most as often as it may, and no collection stays blocked.
func TestKillWhileTasksRun(t *testing.T) {
	t.Parallel()
	rounds := 6
	if testing.Short() {
		rounds = 2
	}
	s := serve(t, embedded(t), declared(t, killed))
	whileTasksRun(t, s, rounds, func() {
		if err := errors.Join(s.Kill(), s.Start(t.Context())); err != nil {
			t.Fatal(err)
		}
	})
}

// whileTasksRun has something break again and again while tasks are enqueued and run, and judges what became of them.
func whileTasksRun(t *testing.T, s *process.Server, rounds int, breaks func()) {
	t.Helper()
	c := dial(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	asked := &acknowledged{ids: map[string]bool{}}
	var producers sync.WaitGroup
	for p := range 4 {
		producers.Go(func() { asked.emit(ctx, t, c, p) })
	}
	producers.Go(func() { asked.sync(ctx, t, c) })
	for range rounds {
		goal := asked.count() + 20 + rand.N(60)
		eventually(t, "more tasks are acknowledged", func() bool { return asked.count() >= goal })
		breaks()
	}
	cancel()
	producers.Wait()

	var told map[string]life
	eventually(t, "every task has ended", func() bool {
		told = lives(t, c)
		for id := range asked.ids {
			if told[id].closed == 0 {
				return false
			}
		}
		return true
	})
	again := 0
	for id, l := range told {
		if l.added != 1 || l.closed > 1 || l.started > 12 {
			t.Errorf("task %s: added %d times, started %d, closed %d", id, l.added, l.started, l.closed)
		}
		again += max(0, l.started-1)
	}
	for _, collection := range []string{"a", "b", "c"} {
		id, existing, err := c.EnqueueSync(t.Context(), "s", collection, 300)
		if err != nil || existing {
			t.Errorf("collection %s: %q, existing %v, %v, want a new task: it is blocked", collection, id, existing, err)
		}
	}
	t.Logf("%d breaks, %d tasks acknowledged, %d starts were repeated", rounds, asked.count(), again)
}

// acknowledged are the ids of tasks that were acknowledged.
type acknowledged struct {
	mu  sync.Mutex
	ids map[string]bool
}

func (a *acknowledged) note(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ids[id] = true
}

func (a *acknowledged) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.ids)
}

// emit sends events to the handler until ctx ends.
func (a *acknowledged) emit(ctx context.Context, t *testing.T, c *client.Client, producer int) {
	for n := 0; ctx.Err() == nil; n++ {
		value := []byte(strconv.Quote(fmt.Sprint(producer, n)))
		e, err := c.EmitTo(context.WithoutCancel(ctx), client.HandlerName{Canvas: "c", Space: "WORKER", Name: "h"}, client.NewEvent{Value: value})
		if err != nil {
			t.Errorf("emit: %v", err)
			return
		}
		a.note(e.ID)
		<-time.After(4 * time.Millisecond) // at the pace at which the machine starts programs
	}
}

// sync asks for collections, by turns, until ctx ends.
func (a *acknowledged) sync(ctx context.Context, t *testing.T, c *client.Client) {
	for n := 0; ctx.Err() == nil; n++ {
		id, _, err := c.EnqueueSync(context.WithoutCancel(ctx), "s", []string{"a", "b", "c"}[n%3], 300)
		if err != nil {
			t.Errorf("enqueue: %v", err)
			return
		}
		a.note(id)
		<-time.After(4 * time.Millisecond)
	}
}

// life is how often the journal says that something happened to a task.
type life struct{ added, started, closed int }

func lives(t *testing.T, c *client.Client) map[string]life {
	t.Helper()
	all := map[string]life{}
	for _, e := range readAll(t, c) {
		l := all[e.Key.TaskID]
		switch e.Type {
		case "TaskAdded":
			l.added++
		case "TaskStarted":
			l.started++
		case "TaskClosed":
			l.closed++
		default:
			continue
		}
		all[e.Key.TaskID] = l
	}
	return all
}
