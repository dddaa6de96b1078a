package queue_test

import (
	"testing"

	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/rule"
	"github.com/millrace/millrace/shared/task"
)

func TestWeightsAreKeptOverAnyThousandContestedStarts(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, b *bench) {
		n, span := 2000, 1000
		if testing.Short() {
			n, span = 400, 200
		}
		jobs := []string{"/fair/a", "/fair/b", "/fair/c"} // of weights 3, 2 and 1
		for range n / queue.MaxBatch * 3 {
			var news []queue.New
			for i := range queue.MaxBatch {
				news = append(news, queue.New{Dialect: task.Job, Job: jobs[i%3]})
			}
			b.enqueue(news...)
		}
		var order []string
		for len(order) < n {
			for _, l := range b.claim(10) {
				order = append(order, l.Task.Job)
			}
		}
		for from := 0; from+span <= n; from += 50 {
			counts := map[string]int{}
			for _, job := range order[from : from+span] {
				counts[job]++
			}
			for i, job := range jobs {
				want := float64(span) * float64(3-i) / 6
				if got := float64(counts[job]); got < want*0.95 || got > want*1.05 {
					t.Fatalf("of the starts %d to %d, %v are of %s, want %.0f ± 5 %%", from, from+span, got, job, want)
				}
			}
		}
	})
}

// However many tasks of one key wait, the first of another key is delayed only by the tasks that run: one for each worker.
func TestABacklogDelaysNobodyElse(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, b *bench) {
		backlog := 20_000
		if testing.Short() {
			backlog = 2000
		}
		for range backlog / queue.MaxBatch {
			var news []queue.New
			for range queue.MaxBatch {
				news = append(news, queue.New{Dialect: task.Job, Job: "/fair/c"})
			}
			b.enqueue(news...)
		}
		for range 30 {
			b.complete(b.claim(1)[0], queue.Result{Outcome: queue.OK})
		}
		first := b.enqueue(queue.New{Dialect: task.Job, Job: "/fair/a"})[0].Task.ID
		for late := 0; ; late++ {
			if b.claim(1)[0].Task.ID == first {
				break
			}
			if late == 1 {
				t.Fatal("more than one of the backlog were started before another's first")
			}
		}
	})
}

func TestUnpausingRunsEachOnceInOrder(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, b *bench) {
		n := 2500
		if testing.Short() {
			n = 250
		}
		b.fillAtRandom(n, 5)
		if err := b.SetRule(t.Context(), "/plain", rule.Pause, true); err != nil {
			t.Fatal(err)
		}
		for range n { // each claim moves some away
			if leases := b.claim(10); len(leases) > 0 {
				t.Fatalf("%d paused tasks were started", len(leases))
			}
			b.enqueue(queue.New{Dialect: task.Job, Job: "/few"})
			if leases := b.claim(1); len(leases) == 1 && leases[0].Task.Job == "/few" {
				b.complete(leases[0], queue.Result{Outcome: queue.OK})
				break // the paused ones delay no others
			}
		}
		if err := b.SetRule(t.Context(), "/plain", rule.Pause, false); err != nil {
			t.Fatal(err)
		}
		var last *task.Task
		seen := map[task.ID]bool{}
		for leases := b.claim(10); len(leases) > 0; leases = b.claim(10) {
			for i := range leases {
				now := &leases[i].Task
				if seen[now.ID] {
					t.Fatalf("task %s was started twice", now.ID)
				}
				seen[now.ID] = true
				if last != nil && now.Job == last.Job && before(last, now) >= 0 {
					t.Fatalf("%d was started after %d", now.Created, last.Created)
				}
				last = now
			}
		}
		if len(seen) != n {
			t.Errorf("%d tasks were started, want %d", len(seen), n)
		}
	})
}
