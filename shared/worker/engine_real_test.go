package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/notifier/local"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/tasklog"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/task"
	"github.com/millrace/millrace/shared/worker"
)

// TestPoolOnTheEngine: the engine and the pool agree on every way in which a task can end.
func TestPoolOnTheEngine(t *testing.T) {
	t.Parallel()
	set := definitions{&definition.Set{Jobs: []definition.Job{
		{Path: "/go", Target: definition.Target{Go: "f"}, Attempts: 1},
		{Path: "/command", Target: definition.Target{Command: []string{"/bin/sh", "-c", "echo out; exit 3"}}, Attempts: 1},
	}}}
	s, notifier := memory.New(memory.Options{}), local.New()
	engine := queue.Open(queue.Options{Store: s, Journal: journal.Open(s, journal.Options{Folds: projection.Folds()}), Definitions: set, Notifier: notifier})
	acts := map[string]func() (json.RawMessage, error){
		`"ok"`:     func() (json.RawMessage, error) { return json.RawMessage(`{"a":1}`), nil },
		`"fail"`:   func() (json.RawMessage, error) { return nil, worker.Fail(errDisk, 0) },
		`"reject"`: func() (json.RawMessage, error) { return nil, worker.Reject(errDisk) },
		`"panic"`:  func() (json.RawMessage, error) { panic(errDisk) },
	}
	var runs atomic.Int64
	r := worker.NewRunner(worker.Options{Engine: engine, Definitions: set, Targets: worker.Targets{
		Command: worker.Command{},
		Go: worker.Functions{"f": func(_ context.Context, a *worker.Attempt, _ *worker.Log) (json.RawMessage, error) {
			runs.Add(1)
			return acts[string(a.Payload)]()
		}},
	}})
	var news []queue.New
	for range 25 {
		for _, payload := range []string{`"ok"`, `"fail"`, `"reject"`, `"panic"`} {
			news = append(news, queue.New{Job: "/go", Payload: json.RawMessage(payload)})
		}
	}
	var added []queue.Added
	for batch := range slices.Chunk(append(news, queue.New{Job: "/command"}), 20) {
		some, err := engine.Enqueue(t.Context(), nil, batch...)
		if err != nil {
			t.Fatal(err)
		}
		added = append(added, some.Tasks...)
	}
	stop := start(t, worker.NewPool(worker.PoolOptions{Runner: r, Notifier: notifier}))
	got := map[string]int{}
	for _, a := range added {
		ended := finished(t, engine, a.Task.ID)
		got[fmt.Sprintf("%s %s: %s %d %q %s", ended.Job, ended.Payload, ended.State, ended.Code, ended.Message, ended.Output)]++
	}
	if err := stop(); err != nil {
		t.Errorf("Run = %v, want nil", err)
	}
	want := map[string]int{
		`/go "ok": succeeded 0 "" {"a":1}`:                 25,
		`/go "fail": failed 0 "the disk is full" `:         25,
		`/go "reject": rejected 0 "the disk is full" `:     25,
		`/go "panic": failed 0 "panic: the disk is full" `: 25,
		`/command : failed 3 "exit status 3" `:             1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tasks (-want +got):\n%s", diff)
	}
	if runs.Load() != 100 {
		t.Errorf("%d runs, want 100", runs.Load())
	}
	page, err := engine.Logs(t.Context(), added[100].Task.ID, tasklog.Query{})
	if err != nil || len(page.Lines) != 1 || page.Lines[0].Message != "out" {
		t.Errorf("log %+v, %v", page.Lines, err)
	}
}

// finished returns a task once it has ended.
func finished(t *testing.T, engine *queue.Queue, id task.ID) task.Task {
	t.Helper()
	for {
		got, err := engine.Get(t.Context(), id)
		if err != nil || t.Context().Err() != nil {
			t.Fatal(err)
		}
		if got.State.Final() {
			return got
		}
	}
}

// TestWhatEncodesLargeIsKept: logs and results that grow when they are encoded, such as XML and HTML, are kept by the engine at
// the first try; a result that it cannot keep fails the attempt at once and says so.
func TestWhatEncodesLargeIsKept(t *testing.T) {
	t.Parallel()
	html := `"` + strings.Repeat("<td>12</td>", 200<<10/11) + `"`
	for name, test := range map[string]struct {
		lines  []string
		output string
		want   task.State
		said   string
	}{
		"a log of XML":           {slices.Repeat([]string{strings.Repeat("<c>1</c>", 512)}, 40), `1`, task.Succeeded, ""},
		"a log of control bytes": {slices.Repeat([]string{strings.Repeat("\x01\u2028", 4096)}, 40), `1`, task.Succeeded, ""},
		"a result of HTML":       {nil, html, task.Succeeded, ""},
		"a result at the limit":  {nil, `"` + strings.Repeat("<", queue.MaxPayload-2) + `"`, task.Succeeded, ""},
		"a result that is too large": {
			nil, `"` + strings.Repeat("<", queue.MaxPayload-1) + `"`, task.Failed, "output: 262145 bytes as it is stored, at most 262144",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := definitions{&definition.Set{Jobs: []definition.Job{{Path: "/go", Target: definition.Target{Go: "f"}, Attempts: 1}}}}
			s, notifier := memory.New(memory.Options{}), local.New()
			engine := queue.Open(queue.Options{Store: s, Journal: journal.Open(s, journal.Options{Folds: projection.Folds()}), Definitions: set, Notifier: notifier})
			r := worker.NewRunner(worker.Options{Engine: engine, Definitions: set, Targets: worker.Targets{
				Go: worker.Functions{"f": func(_ context.Context, _ *worker.Attempt, log *worker.Log) (json.RawMessage, error) {
					for _, line := range test.lines {
						log.Info("%s", line)
					}
					return json.RawMessage(test.output), nil
				}},
			}})
			added, err := engine.Enqueue(t.Context(), nil, queue.New{Dialect: task.Job, Job: "/go"})
			if err != nil {
				t.Fatal(err)
			}
			stop := start(t, worker.NewPool(worker.PoolOptions{Runner: r, Notifier: notifier}))
			ended := finished(t, engine, added.Tasks[0].Task.ID)
			if err := stop(); err != nil {
				t.Errorf("Run = %v, want nil", err)
			}
			if ended.State != test.want || ended.Attempt != 1 || !strings.Contains(ended.Message, test.said) {
				t.Fatalf("%s at attempt %d: %s", ended.State, ended.Attempt, ended.Message)
			}
			if test.want == task.Succeeded && string(ended.Output) != test.output {
				t.Errorf("an output of %d bytes, want %d", len(ended.Output), len(test.output))
			}
			page, err := engine.Logs(t.Context(), ended.ID, tasklog.Query{})
			if err != nil || test.lines != nil && len(page.Lines) != len(test.lines) {
				t.Fatalf("%d lines, want %d: %v", len(page.Lines), len(test.lines), err)
			}
			for i := range test.lines {
				begun, cut := strings.CutSuffix(page.Lines[i].Message, "… (cut: the line is longer than 32 KiB)")
				cut = cut && strings.HasPrefix(test.lines[i], begun)
				if begun != test.lines[i] && !cut {
					t.Errorf("line %d came back as %.60q", i, page.Lines[i].Message)
				}
			}
		})
	}
}
