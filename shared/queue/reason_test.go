package queue_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/rule"
	"github.com/millrace/millrace/shared/queue/view"
	"github.com/millrace/millrace/shared/task"
)

// why returns the code and the sentence of a task's reason.
func (b *bench) why(id task.ID) [2]string {
	b.t.Helper()
	r, err := b.Why(b.t.Context(), id)
	if err != nil {
		b.t.Fatal(err)
	}
	return [2]string{r.Code, r.Reason}
}

func (b *bench) one(n queue.New) task.ID {
	b.t.Helper()
	n.Dialect = task.Job
	return b.enqueue(n)[0].Task.ID
}

func (b *bench) rule(path string, kind rule.Kind) {
	b.t.Helper()
	if err := b.SetRule(b.t.Context(), path, kind, true); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) stop(id task.ID) {
	b.t.Helper()
	if _, err := b.Stop(b.t.Context(), id); err != nil {
		b.t.Fatal(err)
	}
}

// near1 is the one instance that is there.
var near1 = queue.Claimer{Instance: "near/1", Name: "near", Capacity: 1, Jobs: []string{"/near/*"}}

// near starts a task on the instance.
func (b *bench) near() queue.Lease {
	b.t.Helper()
	leases, err := b.Claim(b.t.Context(), near1, 1)
	if err != nil || len(leases) != 1 {
		b.t.Fatalf("the instance got %d tasks, %v, want one", len(leases), err)
	}
	return leases[0]
}

func TestWhyTellsEveryReasonInOneSentence(t *testing.T) {
	t.Parallel()
	plain, near := queue.New{Job: "/plain"}, queue.New{Job: "/near/a"}
	ended := func(r queue.Result) func(*bench) task.ID {
		return func(b *bench) task.ID {
			id := b.one(plain)
			b.complete(b.claim(1)[0], r)
			return id
		}
	}
	tests := map[string]struct {
		arrange func(*bench) task.ID
		code    string
		reason  string
	}{
		"running": {func(b *bench) task.ID { id := b.one(plain); b.claim(1); return id },
			view.ReasonRunning, "It is running: attempt 1, on i."},
		"stopping": {func(b *bench) task.ID { id := b.one(plain); b.claim(1); b.stop(id); return id },
			view.ReasonStopping, "It is running and has been asked to stop; its worker has not answered yet."},
		"succeeded": {ended(queue.Result{Outcome: queue.OK}),
			view.ReasonFinished, "It has succeeded, at attempt 1."},
		"failed": {ended(queue.Result{Outcome: queue.Failed}),
			view.ReasonFinished, "It has failed, at attempt 1, its last."},
		"rejected": {ended(queue.Result{Outcome: queue.Cancel}),
			view.ReasonFinished, "Its handler has rejected it, at attempt 1."},
		"stopped": {func(b *bench) task.ID { id := b.one(plain); b.stop(id); return id },
			view.ReasonFinished, "It was stopped by request."},
		"dropped": {func(b *bench) task.ID {
			id := b.one(plain)
			if err := b.Remove(b.t.Context(), id); err != nil {
				b.t.Fatal(err)
			}
			return id
		}, view.ReasonFinished, "It was removed."},
		"missing": {func(b *bench) task.ID { return b.one(queue.New{Job: "/gone", Missing: true}) },
			view.ReasonMissing, "There is no job /gone that could run it."},
		"delayed": {func(b *bench) task.ID {
			return b.one(queue.New{Job: "/plain", NotBefore: b.clock.now().Add(time.Hour)})
		},
			view.ReasonDelayed, "It is not to start before 2026-01-01T01:00:00Z."},
		"retrying": {func(b *bench) task.ID {
			id := b.one(queue.New{Job: "/plain", Attempts: 2, RetryDelay: time.Minute})
			b.complete(b.claim(1)[0], queue.Result{Outcome: queue.Failed})
			return id
		}, view.ReasonRetrying, "Attempt 1 failed; the next one is at 2026-01-01T00:01:00Z."},
		"paused": {func(b *bench) task.ID { b.rule("/plain", rule.Pause); return b.one(plain) },
			view.ReasonPaused, "An operator has paused /plain."},
		"blocked": {func(b *bench) task.ID {
			b.rule("/plain", rule.Pause)
			b.rule("/plain", rule.Block)
			return b.one(plain)
		},
			view.ReasonBlocked, "An admin has blocked /plain."},
		"suspended": {func(b *bench) task.ID {
			if err := b.Suspend(b.t.Context(), "few", true); err != nil {
				b.t.Fatal(err)
			}
			return b.one(queue.New{Job: "/few"})
		}, view.ReasonSuspended, "An operator has suspended the queue few."},
		"limit of the queue": {func(b *bench) task.ID {
			b.one(queue.New{Job: "/few"})
			b.one(queue.New{Job: "/few"})
			id := b.one(queue.New{Job: "/few"})
			b.claim(5)
			return id
		}, view.ReasonLimitQueue, "The queue few has reached its limit: 2 at once."},
		"limit of a key": {func(b *bench) task.ID {
			n := queue.New{Job: "/plain", Concurrency: &task.Concurrency{Key: "tenant", Limit: 1}}
			b.one(n)
			id := b.one(n)
			b.claim(5)
			return id
		}, view.ReasonLimitKey, `The concurrency key "tenant" has reached its limit: 1 at once.`},
		"ordered, one runs": {func(b *bench) task.ID {
			b.one(queue.New{Job: "/strict"})
			id := b.one(queue.New{Job: "/strict"})
			b.claim(1)
			return id
		}, view.ReasonOrdered, "The queue strict is ordered, and an older one runs."},
		"ordered, one waits": {func(b *bench) task.ID {
			b.one(queue.New{Job: "/strict"})
			return b.one(queue.New{Job: "/strict"})
		}, view.ReasonOrdered, "The queue strict is ordered, and 1 other comes first."},
		"unassigned": {func(b *bench) task.ID { return b.one(queue.New{Job: "/far"}) },
			view.ReasonUnassigned, "It waits for an instance that runs /far."},
		"its instance is full": {func(b *bench) task.ID { b.one(near); b.near(); return b.one(near) },
			view.ReasonLimitInstance, "The instance that runs /near/a has reached its capacity: 1 at once."},
		"ordered for instances, one runs": {func(b *bench) task.ID {
			b.one(queue.New{Job: "/near/a", Queue: "strict"})
			b.near()
			return b.one(queue.New{Job: "/near/b", Queue: "strict"})
		}, view.ReasonOrdered, "The queue strict is ordered, and an older one runs."},
		"ordered for instances, one waits for its next attempt": {func(b *bench) task.ID {
			b.one(queue.New{Job: "/near/a", Queue: "strict", Attempts: 2, RetryDelay: time.Hour})
			b.complete(b.near(), queue.Result{Outcome: queue.Failed})
			return b.one(queue.New{Job: "/near/b", Queue: "strict"})
		}, view.ReasonOrdered, "The queue strict is ordered, and 1 other comes first."},
		"ordered, one waits that nobody runs": {func(b *bench) task.ID {
			b.one(queue.New{Job: "/far", Queue: "strict"})
			return b.one(queue.New{Job: "/near/b", Queue: "strict"})
		}, view.ReasonNext, "It is the next of the queue strict and starts when a worker is free."},
		"behind, for instances": {func(b *bench) task.ID {
			b.one(queue.New{Job: "/near/a", Priority: 2})
			b.one(queue.New{Job: "/near/b", Priority: 1})
			b.one(queue.New{Job: "/far", Priority: 1})
			id := b.one(near)
			b.one(queue.New{Job: "/near/b"})
			return id
		}, view.ReasonBehind, "In the queue main 2 others come first."},
		"behind, by turns of instances": {func(b *bench) task.ID {
			b.one(queue.New{Job: "/near/a", Queue: "fair"})
			b.one(queue.New{Job: "/near/b", Queue: "fair"})
			return b.one(queue.New{Job: "/near/a", Queue: "fair"})
		}, view.ReasonBehind, "In the queue fair 2 others come first."},
		"next, for instances": {func(b *bench) task.ID { id := b.one(near); b.one(queue.New{Job: "/near/b"}); return id },
			view.ReasonNext, "It is the next of the queue main and starts when a worker is free."},
		"behind": {func(b *bench) task.ID {
			b.one(queue.New{Job: "/plain", Priority: 2})
			b.one(queue.New{Job: "/plain", Priority: 1})
			return b.one(plain)
		}, view.ReasonBehind, "In the queue main 2 others come first."},
		"next": {func(b *bench) task.ID { return b.one(plain) },
			view.ReasonNext, "It is the next of the queue main and starts when a worker is free."},
	}
	told := map[string]bool{}
	for name, test := range tests {
		told[test.code] = true
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupWith(t, ways())
			b.Queue = queue.Open(queue.Options{Store: b.store, Journal: b.journal, Definitions: fixed{ways()}, Now: b.clock.now,
				Instances: func(context.Context) ([]queue.Claimer, error) { return []queue.Claimer{near1}, nil }})
			want := [2]string{test.code, test.reason}
			if diff := cmp.Diff(want, b.why(test.arrange(b))); diff != "" {
				t.Errorf("Why (-want +got):\n%s", diff)
			}
		})
	}
	for _, code := range view.ReasonCodes() {
		if !told[code] {
			t.Errorf("nothing shows the reason %q", code)
		}
	}
}
