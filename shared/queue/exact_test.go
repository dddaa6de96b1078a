package queue_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// shared is a store that other processes use too: the engine then settles everything in the store.
type shared struct{ store.Store }

// Exclusive returns false.
func (shared) Exclusive() bool { return false }

// another returns an engine of another process over the bench's store.
func (b *bench) another() *bench { return b.over(shared{b.store}, b.clock) }

// over returns an engine of another process over a store, with a clock.
func (b *bench) over(s store.Store, c *clock) *bench {
	b.t.Helper()
	o := &bench{t: b.t, store: s, clock: c}
	o.journal = journal.Open(s, journal.Options{Now: c.now, Folds: projection.Folds()})
	b.t.Cleanup(func() { _ = o.journal.Close() })
	o.Queue = queue.Open(queue.Options{Store: s, Journal: o.journal, Definitions: fixed{ways()}, Now: c.now})
	return o
}

// bothWays runs a test with a process that has the store to itself, and with one that shares it.
func bothWays(t *testing.T, test func(t *testing.T, b *bench)) {
	t.Helper()
	for name, alone := range map[string]bool{"alone": true, "shared": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupWith(t, ways())
			if !alone {
				b = b.another()
			}
			test(t, b)
		})
	}
}

// before compares in the promised order: priority, then creation, then id.
func before(a, b *task.Task) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Created, b.Created), cmp.Compare(a.ID.UUID(), b.ID.UUID()))
}

// fillAtRandom enqueues n tasks of random priority, in batches.
func (b *bench) fillAtRandom(n, priorities int) {
	b.t.Helper()
	luck := rand.New(rand.NewPCG(1, 2))
	for n > 0 {
		news := make([]queue.New, min(n, queue.MaxBatch))
		for i := range news {
			news[i] = queue.New{Dialect: task.Job, Job: "/plain", Priority: luck.Int64N(int64(priorities)) - 3}
		}
		b.enqueue(news...)
		n -= len(news)
	}
}

func TestOneWorkerStartsTasksInExactOrder(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, b *bench) {
		n := 10_000
		if testing.Short() {
			n = 1000
		}
		b.fillAtRandom(n, 50)
		var last *task.Task
		started := 0
		for leases := b.claim(10); len(leases) > 0; leases = b.claim(10) {
			for i := range leases {
				now := &leases[i].Task
				if last != nil && before(last, now) >= 0 {
					t.Fatalf("priority %d of %d was started after %d of %d", now.Priority, now.Created, last.Priority, last.Created)
				}
				if last != nil && last.Score() < now.Score() {
					t.Fatalf("score %d was started after %d", now.Score(), last.Score())
				}
				last = now
				started++
			}
		}
		if started != n {
			t.Errorf("%d tasks were started, want %d", started, n)
		}
	})
}

// A claim starts as many tasks as are wanted, though a write holds fewer; an instance's claim, no more than it has free slots.
func TestOneClaimStartsMoreThanOneWriteHolds(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, b *bench) {
		b.fillAtRandom(3*queue.MaxClaim, 5)
		leases := b.claim(2*queue.MaxClaim + 2)
		if len(leases) != 2*queue.MaxClaim+2 {
			t.Fatalf("%d tasks were started, want %d", len(leases), 2*queue.MaxClaim+2)
		}
		for i := 1; i < len(leases); i++ {
			if before(&leases[i-1].Task, &leases[i].Task) >= 0 {
				t.Errorf("task %d was started out of order", i)
			}
		}
		for range 3 * queue.MaxClaim {
			b.one(queue.New{Job: "/far"})
		}
		by := queue.Claimer{Instance: "w", Capacity: queue.MaxClaim + 3, Jobs: []string{"/far"}}
		if leases, err := b.Claim(t.Context(), by, 100); err != nil || len(leases) != by.Capacity {
			t.Errorf("Claim = %d leases, %v, want %d", len(leases), err, by.Capacity)
		}
	})
}

// A task is not started while an earlier one in order is ready that no claim under way is about to start.
func TestManyWorkersPassOverNothing(t *testing.T) {
	t.Parallel()
	server := func(int) queue.Claimer { return queue.Claimer{Instance: "i"} }
	instance := func(n int) queue.Claimer { return queue.Claimer{Instance: fmt.Sprint("i/", n), Capacity: 2000} }
	for name, by := range map[string]func(int) queue.Claimer{"workers of a server": server, "instances": instance} {
		bothWays(t, func(t *testing.T, b *bench) {
			t.Run(name, func(t *testing.T) { b.passOverNothing(t, by) })
		})
	}
}

func (b *bench) passOverNothing(t *testing.T, by func(n int) queue.Claimer) {
	const workers, n = 16, 1500
	b.fillAtRandom(n, 10)
	type start struct {
		task       task.Task
		began, end int64 // of its claim, by a clock that counts claims
	}
	var ticks atomic.Int64
	var mu sync.Mutex
	var starts []start
	var group sync.WaitGroup
	for i := range workers {
		group.Go(func() {
			for {
				began := ticks.Add(1)
				leases, err := b.Claim(context.Background(), by(i), 1)
				if err != nil || len(leases) == 0 {
					return
				}
				end := ticks.Add(1)
				mu.Lock()
				starts = append(starts, start{leases[0].Task, began, end})
				mu.Unlock()
			}
		})
	}
	group.Wait()
	if len(starts) != n {
		t.Fatalf("%d tasks were started, want %d", len(starts), n)
	}
	for i := range starts {
		for j := range starts {
			worse, better := &starts[i], &starts[j]
			if before(&better.task, &worse.task) < 0 && better.began > worse.end {
				t.Fatalf("priority %d was started while %d was ready and no claim was about to start it",
					worse.task.Priority, better.task.Priority)
			}
		}
	}
}

// Many instances for which one process claims cost as few writes as one that wants as much, since they pick side by side; where other processes do
// the same, those of one process pick as one.
func TestClaimsForManyInstancesRarelyWriteInVain(t *testing.T) {
	t.Parallel()
	for _, r := range []rivals{
		{processes: 1, instances: 16, each: 4, tasks: 1920, writes: 0.2}, {processes: 1, instances: 64, each: 1, tasks: 1920, writes: 0.2},
		{processes: 4, instances: 16, each: 4, tasks: 1920, writes: 0.8}, {processes: 4, instances: 16, each: 1, tasks: 1920, writes: 2.5},
	} {
		for _, onePart := range []bool{true, false} {
			r := r
			r.onePart = onePart
			t.Run(fmt.Sprintf("%d processes, %d instances, %d each, one part %t", r.processes, r.instances, r.each, r.onePart), func(t *testing.T) {
				t.Parallel()
				r.raceForTasksAtRandom(t)
			})
		}
	}
}

// raceForTasksAtRandom is race for tasks of random priority, in virtual time.
func (r *rivals) raceForTasksAtRandom(t *testing.T) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := setupWith(t, ways())
		b.clock.t = time.Now()
		b.fillAtRandom(r.tasks, 10)
		r.race(b, fixed{ways()})
	})
}

// Sixteen processes on one store need few writes besides those that start tasks, since marks settle first who starts what. Of sixty
// claimers that take as many tasks as they can, none gets nothing while tasks are ready.
func TestClaimersOfOtherProcessesRarelyWriteInVain(t *testing.T) {
	t.Parallel()
	for _, r := range []rivals{{processes: 16, each: 10, tasks: 2400, writes: 1.3}, {processes: 60, each: queue.MaxClaim, tasks: 6000, writes: 3}} {
		t.Run(fmt.Sprint(r.processes, " processes"), func(t *testing.T) {
			t.Parallel()
			r.raceForTasksAtRandom(t)
		})
	}
}
