package queue_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/task"
)

// TestReturnCode: the end of an attempt has a return code only if one was returned, so that 0 is always a success.
func TestReturnCode(t *testing.T) {
	t.Parallel()
	complete := func(r queue.Result) func(*bench, queue.Lease) {
		return func(b *bench, l queue.Lease) { b.complete(l, r) }
	}
	for name, test := range map[string]struct {
		end  func(*bench, queue.Lease)
		want map[string]any
	}{
		"a success":           {complete(queue.Result{Outcome: queue.OK}), map[string]any{"returnCode": 0.0, "outcome": "ok"}},
		"a failure":           {complete(queue.Result{Outcome: queue.Failed, Code: 3}), map[string]any{"returnCode": 3.0, "outcome": "failed"}},
		"refused":             {complete(queue.Result{Outcome: queue.Cancel, Code: 409}), map[string]any{"returnCode": 409.0, "outcome": "cancel"}},
		"nothing was reached": {complete(queue.Result{Outcome: queue.Failed}), map[string]any{"outcome": "failed"}},
		"a panic":             {complete(queue.Result{Outcome: queue.Thrown}), map[string]any{"outcome": "thrown"}},
		"stopped": {func(b *bench, l queue.Lease) {
			if _, err := b.Stop(b.t.Context(), l.Task.ID); err != nil {
				b.t.Fatal(err)
			}
			b.complete(l, queue.Result{Outcome: queue.Cancel})
		}, map[string]any{"outcome": "cancel"}},
		"lost": {func(b *bench, l queue.Lease) {
			b.clock.advance(l.Length)
			if _, err := b.Sweep(b.t.Context()); err != nil {
				b.t.Fatal(err)
			}
		}, map[string]any{"outcome": "lost"}},
		"removed": {func(b *bench, l queue.Lease) {
			if err := b.Remove(b.t.Context(), l.Task.ID); err != nil {
				b.t.Fatal(err)
			}
		}, map[string]any{"outcome": "dropped"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bothWays(t, func(t *testing.T, b *bench) {
				id := b.one(queue.New{Job: "/plain", Attempts: 1})
				test.end(b, b.claim(1)[0])
				if diff := cmp.Diff(test.want, b.said(id, "TaskEnded")); diff != "" {
					t.Errorf("TaskEnded (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestReturnCodeOfAnEarlierAttempt: the code of an earlier attempt is not repeated for one that returned none.
func TestReturnCodeOfAnEarlierAttempt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.one(queue.New{Job: "/plain", Attempts: 2})
	b.complete(b.claim(1)[0], queue.Result{Outcome: queue.Failed, Code: 3})
	b.claim(1)
	if err := b.Remove(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"outcome": "dropped"}, b.said(id, "TaskEnded")); diff != "" {
		t.Errorf("TaskEnded (-want +got):\n%s", diff)
	}
}

// said returns the fields of a task's newest event of a type.
func (b *bench) said(id task.ID, kind string) map[string]any {
	b.t.Helper()
	answer, err := b.journal.ReadNewest(b.t.Context(), journal.Request{Limit: 1, Match: func(e *event.Event) bool {
		return e.Type == kind && e.Key.TaskID == string(id)
	}})
	if err != nil || len(answer.Events) != 1 {
		b.t.Fatalf("%d events %s, %v", len(answer.Events), kind, err)
	}
	fields := map[string]any{}
	if err := json.Unmarshal([]byte("{"+string(answer.Events[0].Fields)+"}"), &fields); err != nil {
		b.t.Fatal(err)
	}
	return fields
}
