package e2e_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/tests/process"
)

const remoteHandler = `
lease: 1s
handlers:
  - {canvas: c, space: WORKER, name: h, target: {instances: true}, attempts: 30, retry_delay: 10ms}
`

// worker is a process that runs tasks of a server.
type worker struct {
	command []string
	*exec.Cmd
	printed bytes.Buffer
}

func (w *worker) start(t *testing.T, s *process.Server) {
	t.Helper()
	w.startAt(t, s.URL())
}

func (w *worker) startAt(t *testing.T, url string) {
	t.Helper()
	w.Cmd = exec.CommandContext(t.Context(), w.command[0], w.command[1:]...)
	w.Env = append(os.Environ(), "MILLRACE_URL="+url, "MILLRACE_TOKEN="+token)
	w.Stderr = &w.printed
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
}

func pythonWorker(t *testing.T) *worker {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("install python3 to run the example of a worker")
	}
	return &worker{command: []string{python, "../../scripts/examples/worker.py", "/canvases/**", "4"}}
}

// drain ends a worker as an operator would, and checks that it ends well.
func (w *worker) drain(t *testing.T) {
	t.Helper()
	if err := w.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := w.Wait(); err != nil {
		t.Errorf("%s ended badly: %v: %s", w.command[0], err, w.printed.String())
	}
}

// giveWork emits events to the handler and returns their ids.
func giveWork(t *testing.T, c *client.Client, n int) []string {
	t.Helper()
	ids := make([]string, n)
	for i := range ids {
		e, err := c.EmitTo(t.Context(), client.HandlerName{Canvas: "c", Space: "WORKER", Name: "h"}, client.NewEvent{Value: fmt.Appendf(nil, "%d", i)})
		if err != nil {
			t.Fatal(err)
		}
		ids[i] = e.ID
	}
	return ids
}

// ended waits until each task has ended, and checks that it did so once.
func ended(t *testing.T, c *client.Client, ids []string) map[string]life {
	t.Helper()
	var told map[string]life
	eventually(t, "every task has ended", func() bool {
		<-time.After(100 * time.Millisecond)
		told = lives(t, c)
		for _, id := range ids {
			if told[id].closed == 0 {
				return false
			}
		}
		return true
	})
	for _, id := range ids {
		if l := told[id]; l.added != 1 || l.closed != 1 {
			t.Errorf("task %s: added %d times, closed %d", id, l.added, l.closed)
		}
	}
	return told
}

// TestPythonWorker runs the example in Python.
func TestPythonWorker(t *testing.T) {
	t.Parallel()
	s := serve(t, embedded(t), declared(t, remoteHandler))
	c := dial(t, s)
	w := pythonWorker(t)
	w.start(t, s)
	ids := giveWork(t, c, 20)
	ended(t, c, ids)
	w.drain(t)
	event, err := c.HandlerEvent(t.Context(), "c", ids[7])
	if err != nil || event.Status != "done" || !strings.HasPrefix(event.DequeuedBy, "python-") {
		t.Errorf("event = %+v, %v, want it done by the worker", event, err)
	}
}
