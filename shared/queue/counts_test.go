package queue_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/task"
)

func TestCountsTellThoseThatWaitForATimeFromThoseThatAreReady(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, b *bench) {
		b.enqueue(
			queue.New{Dialect: task.Job, Job: "/plain"}, queue.New{Dialect: task.Job, Job: "/plain", NotBefore: b.clock.now().Add(time.Hour)},
			queue.New{Dialect: task.Job, Job: "/strict"}, queue.New{Dialect: task.Job, Job: "/few", NotBefore: b.clock.now().Add(time.Minute)},
		)
		count := func(want map[string]map[task.State]int64) {
			t.Helper()
			got, err := b.Counts(t.Context(), "/")
			if err != nil {
				t.Fatal(err)
			}
			for _, states := range got {
				for state, n := range states {
					if n == 0 {
						delete(states, state)
					}
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("counts (-want +got):\n%s", diff)
			}
		}
		count(map[string]map[task.State]int64{
			"/plain": {task.Ready: 1, task.Waiting: 1}, "/strict": {task.Ready: 1}, "/few": {task.Waiting: 1},
		})
		for _, l := range b.claim(2) { // that of /plain succeeds, and that of /strict is to be tried again in a minute
			if r := (queue.Result{Outcome: queue.OK}); l.Task.Job == "/strict" {
				b.complete(l, queue.Result{Outcome: queue.Failed})
			} else {
				b.complete(l, r)
			}
		}
		count(map[string]map[task.State]int64{
			"/plain": {task.Waiting: 1, task.Succeeded: 1}, "/strict": {task.Waiting: 1}, "/few": {task.Waiting: 1},
		})
		b.clock.advance(2 * time.Minute)
		count(map[string]map[task.State]int64{
			"/plain": {task.Waiting: 1, task.Succeeded: 1}, "/strict": {task.Ready: 1}, "/few": {task.Ready: 1},
		})
	})
}

func TestTheOldestThatWaitsIsToldOfEachJob(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, b *bench) {
		first := b.one(queue.New{Job: "/plain"})
		b.clock.advance(time.Minute)
		due := b.clock.now().Add(time.Hour).Truncate(time.Microsecond)
		b.one(queue.New{Job: "/plain", NotBefore: due})
		third := b.one(queue.New{Job: "/few"})
		created := func(id task.ID) time.Time {
			found, err := b.Get(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			return time.UnixMicro(found.Created)
		}
		oldest := func(want map[string]time.Time) {
			t.Helper()
			if got, err := b.OldestWaiting(t.Context(), "/"); err != nil || !cmp.Equal(want, got) {
				t.Errorf("%v: oldest (-want +got):\n%s", err, cmp.Diff(want, got))
			}
		}
		oldest(map[string]time.Time{"/plain": created(first), "/few": created(third)})
		b.claim(1)
		oldest(map[string]time.Time{"/few": created(third)})
		b.claim(1)
		oldest(map[string]time.Time{})
		b.clock.advance(2 * time.Hour)
		oldest(map[string]time.Time{"/plain": due})
	})
}

// TestHowAJobStandsCostsTheSameBehindAnyHistoryAndAnyDelay: neither finished tasks nor those that wait for a time are read.
func TestHowAJobStandsCostsTheSameBehindAnyHistoryAndAnyDelay(t *testing.T) {
	t.Parallel()
	b, m := metered(t)
	b.enqueue(queue.New{Dialect: task.Job, Job: "/plain"}, queue.New{Dialect: task.Job, Job: "/plain", NotBefore: b.clock.now().Add(time.Hour)})
	cost := func() (calls int, rcu float64) {
		t.Helper()
		for _, look := range []func() error{
			func() error { _, err := b.Counts(t.Context(), "/plain"); return err },
			func() error { _, err := b.OldestWaiting(t.Context(), "/plain"); return err },
		} {
			if err := look(); err != nil { // what is new on the journal is behind us
				t.Fatal(err)
			}
			m.Reset()
			if err := look(); err != nil {
				t.Fatal(err)
			}
			total := m.Usage().Total()
			calls, rcu = calls+total.Calls, rcu+total.RCU
		}
		return calls, rcu
	}
	calls, rcu := cost()
	for range 5000 {
		b.enqueue(queue.New{Dialect: task.Job, Job: "/plain", Priority: 1})
		b.complete(b.claim(1)[0], queue.Result{Outcome: queue.OK})
	}
	for range 50_000 / queue.MaxBatch {
		news := make([]queue.New, queue.MaxBatch)
		for i := range news {
			news[i] = queue.New{Dialect: task.Job, Job: "/plain", NotBefore: b.clock.now().Add(time.Hour)}
		}
		b.enqueue(news...)
	}
	if c, r := cost(); c != calls || r != rcu || c > 6 {
		t.Errorf("behind 5,000 finished tasks and 50,000 delayed ones: %d calls and %v RCU, want as before: %d and %v", c, r, calls, rcu)
	}
	t.Logf("%d calls, %v RCU", calls, rcu)
}
