package queue_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/task"
)

// Tasks of several topics wait in several lines; an instance still takes them in the order of their queue: by priority, then
// creation. It takes only those that it can run.
func TestOneOrderOverTheLinesOfAQueue(t *testing.T) {
	t.Parallel()
	eitherWay(t, func(t *testing.T, alone bool) {
		b, _ := declaredIn(t, alone, server())
		luck := rand.New(rand.NewPCG(1, 2))
		var want []task.Task
		for i := range 300 {
			id := b.add(fmt.Sprintf("t/%d", i%7), func(n *queue.New) { n.Priority = luck.Int64N(5) })
			added, err := b.Get(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			if i%7 != 3 {
				want = append(want, added)
			}
		}
		slices.SortFunc(want, func(x, y task.Task) int { return before(&x, &y) })
		var jobs []string
		for i := range 7 {
			if i != 3 {
				jobs = append(jobs, fmt.Sprintf("/topics/t/%d", i))
			}
		}
		var got, wanted []task.ID
		for len(got) < len(want) {
			leases, err := b.Claim(t.Context(), queue.Claimer{Instance: "w/1", Jobs: jobs}, 1+luck.IntN(15))
			if err != nil || len(leases) == 0 {
				t.Fatalf("Claim = %d leases, %v, after %d", len(leases), err, len(got))
			}
			got = append(got, ids(leases)...)
		}
		for i := range want {
			wanted = append(wanted, want[i].ID)
		}
		if diff := cmp.Diff(wanted, got); diff != "" {
			t.Errorf("order of the starts (-want +got):\n%s", diff)
		}
	})
}

// An ordered queue waits for its oldest task while there is an instance that could run it, and not for one that none can.
func TestOrderedQueueWaitsForWhoCanRunItsHead(t *testing.T) {
	t.Parallel()
	eitherWay(t, func(t *testing.T, alone bool) {
		p := preferences(t, alone)
		var there []queue.Claimer
		p.ordered(alone, func(context.Context) ([]queue.Claimer, error) { return there, nil })
		a := queue.Claimer{Instance: "a/1", Jobs: []string{"/topics/o/a"}}
		b := queue.Claimer{Instance: "b/1", Jobs: []string{"/topics/o/b"}}
		first, second, third := p.add("o/a"), p.add("o/b"), p.add("o/a")
		there = []queue.Claimer{a, b}
		p.want(b, "the other takes")
		there = []queue.Claimer{b}
		leases := p.want(b, "the other takes while nobody runs the first", second)
		there = []queue.Claimer{a, b}
		p.want(a, "the first takes while one runs")
		p.done(leases)
		p.done(p.want(a, "the first takes", first))
		p.want(a, "the first takes", third)
	})
}

// ordered replaces the engine by one with an ordered queue.
func (p *preferring) ordered(alone bool, instances func(context.Context) ([]queue.Claimer, error)) {
	d := &definition.Set{Queues: []definition.Queue{{Name: "o", Topics: []string{"o/*"}, Type: definition.Ordered}}}
	p.Queue = queue.Open(queue.Options{
		Store: p.store, Journal: p.journal, Definitions: fixed{d}, Now: p.clock.now, Instances: instances,
	})
}

// Instances of several processes that take from the same lines start each task once, and few of their writes fail.
func TestRivalsOverSeveralLines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, d := declaredIn(t, false, server())
		b.clock.t = time.Now()
		r := rivals{processes: 8, each: 10, tasks: 960, writes: 3, jobs: []string{"/topics/**"}}
		for i := range r.tasks {
			b.add(fmt.Sprintf("t/%d", i%5))
		}
		r.race(b, d)
	})
}
