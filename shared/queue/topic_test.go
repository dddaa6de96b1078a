package queue_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/view"
	"github.com/millrace/millrace/shared/task"
)

// An ordered queue runs one job at a time, in the order of creation over all of its topics; one that failed keeps its place at the
// head, and those behind wait for it.
func TestOrderedOverSeveralTopics(t *testing.T) {
	t.Parallel()
	names := []string{"o/a", "o/b", "o/c"}
	b := topics(t, names, definition.Queue{Name: "ordered", Topics: []string{"o/*"}, Type: definition.Ordered})
	var want, got []task.ID
	for i := range 60 {
		id := b.add(names[i%3], func(n *queue.New) { n.Priority = int64(i % 5) }) // which an ordered queue does not heed
		want = append(want, id)
	}
	failures := map[task.ID]int{}
	for n := 0; len(got) < len(want); n++ {
		leases := b.claim(15)
		if len(leases) > 1 {
			t.Fatalf("%d run at once", len(leases))
		}
		if len(leases) == 0 { // the head waits for its next attempt
			if len(got) == len(want) || failures[want[len(got)]] == 0 {
				t.Fatalf("nothing runs after %d", len(got))
			}
			b.clock.advance(time.Second)
			continue
		}
		if more := b.claim(15); len(more) > 0 {
			t.Fatalf("another one was started while one runs")
		}
		id := leases[0].Task.ID
		if id != want[len(got)] {
			t.Fatalf("after %d runs %s, want %s", len(got), id, want[len(got)])
		}
		if n%4 == 0 && failures[id] < 3 {
			failures[id]++
			b.end(leases[0], queue.Result{Outcome: queue.Failed})
			continue
		}
		b.end(leases[0], queue.Result{Outcome: queue.OK})
		got = append(got, id)
	}
	if diff := cmp.Diff(want, got); diff != "" || len(failures) == 0 {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A round-robin queue takes a job of each topic in turn, however many one of them has, and as many at once as it may.
func TestRoundRobinByTopic(t *testing.T) {
	t.Parallel()
	var names []string
	for i := range 10 {
		names = append(names, fmt.Sprintf("r/%d", i))
	}
	b := topics(t, names, definition.Queue{Name: "turns", Topics: []string{"r/."}, Type: definition.RoundRobin, MaxParallel: 5})
	for range 200 {
		b.add(names[0])
	}
	for range 10 {
		for _, name := range names[1:] {
			b.add(name)
		}
	}
	var running []queue.Lease
	most, started := 0, []string{}
	for len(started) < 100 {
		running = append(running, b.claim(3)...)
		if most = max(most, len(running)); len(running) < 5 {
			running = append(running, b.claim(15)...)
		}
		most = max(most, len(running))
		if len(running) == 0 {
			t.Fatal("nothing runs")
		}
		started = append(started, running[0].Task.Job)
		b.end(running[0], queue.Result{Outcome: queue.OK})
		running = running[1:]
	}
	if most != 5 {
		t.Errorf("%d ran at once, want 5", most)
	}
	count := map[string]int{}
	for _, job := range started {
		count[job]++
	}
	for _, name := range names {
		if n := count[queue.TopicPath(name)]; n < 9 || n > 11 {
			t.Errorf("%s: %d of the first 100, want about 10", name, n)
		}
	}
}

// Each topic of a family of queues has a queue, and a limit, of its own.
func TestFamilyOfQueues(t *testing.T) {
	t.Parallel()
	b := topics(t, []string{"m/a", "m/b"}, definition.Queue{Name: "m-{0}", Topics: []string{"m/*"}, Type: definition.Ordered})
	for range 3 {
		b.add("m/a")
		b.add("m/b")
	}
	leases := b.claim(15)
	if len(leases) != 2 || leases[0].Task.Queue == leases[1].Task.Queue {
		t.Errorf("%d run, want one of each queue", len(leases))
	}
}

// A family is suspended as a whole: its present members and later ones; not a queue that is declared by itself.
func TestSuspendedFamily(t *testing.T) {
	t.Parallel()
	b := topics(t, []string{"m/a", "m/b", "m/own", "other"},
		definition.Queue{Name: "m-own", Topics: []string{"m/own"}},
		definition.Queue{Name: "m-{0}", Topics: []string{"m/*"}})
	suspend := func(name string, on bool) {
		t.Helper()
		for range 2 {
			if err := b.Suspend(t.Context(), name, on); err != nil {
				t.Fatal(err)
			}
		}
	}
	started := func() (jobs []string) {
		t.Helper()
		for _, l := range b.claim(15) {
			jobs = append(jobs, l.Task.Job)
		}
		slices.Sort(jobs)
		return jobs
	}
	a := b.add("m/a")
	suspend("m-{0}", true)
	b.add("m/b") // of a queue that was not there before
	b.add("m/own")
	b.add("other")
	if diff := cmp.Diff([]string{"/topics/m/own", "/topics/other"}, started()); diff != "" {
		t.Errorf("started while the family is suspended (-want +got):\n%s", diff)
	}
	if why, err := b.Why(t.Context(), a); err != nil || why.Code != view.ReasonSuspended {
		t.Errorf("Why = %v, %v", why, err)
	}
	suspend("m-a", true)
	suspend("m-b", false) // which was not suspended by itself
	if got := started(); got != nil {
		t.Errorf("started %v, want none", got)
	}
	suspend("m-{0}", false)
	if diff := cmp.Diff([]string{"/topics/m/b"}, started()); diff != "" {
		t.Errorf("started while a member is suspended by itself (-want +got):\n%s", diff)
	}
	suspend("m-a", false)
	if diff := cmp.Diff([]string{"/topics/m/a"}, started()); diff != "" {
		t.Errorf("started in the end (-want +got):\n%s", diff)
	}
	b.add("m/b")
	b.add("m/own")
	if n, err := b.Purge(t.Context(), "m-{0}"); n != 1 || err != nil {
		t.Errorf("Purge = %d, %v, want 1", n, err)
	}
}
