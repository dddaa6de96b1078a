package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/bell/local"
	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/queue"
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
	s, bell := memory.New(memory.Options{}), local.New()
	engine := queue.Open(queue.Options{Store: s, Journal: journal.Open(s, journal.Options{}), Definitions: set, Bell: bell})
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
	stop := start(t, worker.NewPool(worker.PoolOptions{Runner: r, Bell: bell}))
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
	page, err := engine.Logs(t.Context(), added[100].Task.ID, queue.LogQuery{})
	if err != nil || len(page.Lines) != 1 || page.Lines[0].Message != "out" {
		t.Errorf("log %+v, %v", page.Lines, err)
	}
}

// finished answers a task once it has ended.
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
