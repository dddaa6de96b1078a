package queue_test

import (
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/store/meter"
	"github.com/millrace/millrace/shared/task"
)

// metered is an engine that shares its store; the store's costs on DynamoDB are computed.
func metered(t *testing.T) (*bench, *meter.Meter) {
	t.Helper()
	b := setupWith(t, ways())
	m := meter.New(shared{memory.New(memory.Options{})})
	b.store = m
	b.journal = journal.Open(m, journal.Options{Now: b.clock.now, Folds: projection.Folds()})
	b.Queue = queue.Open(queue.Options{Store: m, Journal: b.journal, Definitions: fixed{ways()}, Now: b.clock.now})
	warm := queue.New{Dialect: task.Job, Job: "/plain"} // what is read once in a while is behind us
	b.enqueue(warm)
	b.complete(b.claim(1)[0], queue.Result{Outcome: queue.OK})
	return b, m
}

func TestAClaimMakesTheSameCallsAtAnyBacklog(t *testing.T) {
	t.Parallel()
	large := 10_000
	if os.Getenv("CI") == "true" {
		large = 100_000
	}
	calls := map[int]int{}
	for _, backlog := range []int{1000, large} {
		b, m := metered(t)
		b.fillAtRandom(backlog, 10)
		m.Reset()
		for range 10 {
			b.claim(1)
		}
		calls[backlog] = m.Usage().Total().Calls
	}
	if calls[1000] != calls[large] {
		t.Errorf("ten claims made %d calls with 1,000 tasks waiting, and %d with %d", calls[1000], calls[large], large)
	}
}

// lifeOf runs tasks from enqueue to completion, with n tasks in each write.
func lifeOf(b *bench, n int) {
	b.t.Helper()
	news := make([]queue.New, n)
	for i := range news {
		news[i] = queue.New{Dialect: task.Job, Job: "/plain", Payload: fmt.Appendf(nil, `"%0254d"`, i)}
	}
	b.enqueue(news...)
	leases := b.claim(n)
	if len(leases) != n {
		b.t.Fatalf("%d leases, want %d", len(leases), n)
	}
	var group sync.WaitGroup
	for _, l := range leases {
		group.Go(func() { b.complete(l, queue.Result{Outcome: queue.OK}) })
	}
	group.Wait()
}

func TestATaskOf256BytesCostsNoMoreThanItsBudget(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ batch, budget int }{{1, 24}, {10, 17}} {
		b, m := metered(t)
		m.Reset()
		lifeOf(b, test.batch)
		u := m.Usage()
		each := float64(u.Total().WCU) / float64(test.batch)
		t.Logf("in batches of %d: %.1f WCU and %.1f RCU for each task: %+v", test.batch, each, u.Total().RCU/float64(test.batch), u)
		if each > float64(test.budget) {
			t.Errorf("a task's life costs %.1f WCU in batches of %d, want at most %d", each, test.batch, test.budget)
		}
	}
}
