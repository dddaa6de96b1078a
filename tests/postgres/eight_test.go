package postgres_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	pgstore "github.com/millrace/millrace/shared/store/postgres"
	"github.com/millrace/millrace/shared/task"
)

const (
	processes = 8
	each      = 3 // tasks that a claim wants
	underWay  = processes * each
)

// started is a task's start.
type started struct {
	task task.Task
	span // of its claim
}

// span is when a claim began and ended, by a clock that counts these.
type span struct{ began, end int64 }

func (s span) overlaps(other span) bool { return s.began < other.end && other.began < s.end }

// eight returns the queues of eight processes on a database of their own, with connections, journals and memories of their own.
func eight(t *testing.T, set *definition.Set) (all []*queue.Queue) {
	t.Helper()
	url := tables(t) + "&pool_max_conns=2"
	for range processes {
		s, err := pgstore.Open(context.Background(), pgstore.Options{URL: url, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		j := journal.Open(s, journal.Options{Folds: projection.Folds()})
		q := queue.Open(queue.Options{Store: s, Journal: j, Definitions: declared{set}, OnePart: true})
		t.Cleanup(func() { _ = q.Close(); _ = j.Close(); _ = s.Close() })
		all = append(all, q)
	}
	return all
}

// fill adds tasks by all processes in turn.
func fill(t *testing.T, all []*queue.Queue, news []queue.New) {
	t.Helper()
	n := 0
	for batch := range slices.Chunk(news, queue.MaxBatch) {
		if _, err := all[n%len(all)].Enqueue(t.Context(), nil, batch...); err != nil {
			t.Fatal(err)
		}
		n++
	}
}

// drain has all processes claim at once until n tasks were started, and complete every task. It returns the starts by the ends of their
// claims, and the claims that have got less than they wanted; it fails unless each task was started once.
func drain(t *testing.T, all []*queue.Queue, n int) (starts []started, short []span) {
	t.Helper()
	var ticks, count atomic.Int64
	var mu sync.Mutex
	var group sync.WaitGroup
	for i, q := range all {
		group.Go(func() {
			for int(count.Load()) < n && !t.Failed() {
				began := ticks.Add(1)
				leases, err := q.Claim(t.Context(), queue.Claimer{Instance: fmt.Sprint("p", i)}, each)
				claim := span{began, ticks.Add(1)}
				if err != nil {
					t.Errorf("Claim: %v", err)
				}
				count.Add(int64(len(leases)))
				mu.Lock()
				if len(leases) < each {
					short = append(short, claim)
				}
				for _, l := range leases {
					starts = append(starts, started{l.Task, claim})
				}
				mu.Unlock()
				for _, l := range leases {
					if _, err := q.Complete(t.Context(), l.Token, queue.Result{Outcome: queue.OK}); err != nil {
						t.Errorf("Complete: %v", err)
					}
				}
			}
		})
	}
	group.Wait()
	slices.SortStableFunc(starts, func(a, b started) int { return cmp.Compare(a.end, b.end) })
	times := map[task.ID]int{}
	for _, s := range starts {
		if times[s.task.ID]++; times[s.task.ID] > 1 {
			t.Errorf("task %s was started %d times", s.task.ID, times[s.task.ID])
		}
	}
	if len(times) != n {
		t.Fatalf("%d tasks were started, want %d", len(times), n)
	}
	return starts, short
}

// before compares in the promised order: priority, then creation, then id.
func before(a, b *task.Task) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Created, b.Created), cmp.Compare(a.ID.UUID(), b.ID.UUID()))
}

// Of eight processes that claim at once, none starts a task while one before it is ready that no claim under way may be about to start;
// and each task is started once. A claim may be about to start what it does not get in the end.
func TestEightProcessesKeepTheOrder(t *testing.T) {
	t.Parallel()
	const n = 600
	all := eight(t, &definition.Set{Jobs: []definition.Job{{Path: "/plain", Target: definition.Target{Go: "f"}}}})
	luck := rand.New(rand.NewPCG(1, 2))
	news := make([]queue.New, n)
	for i := range news {
		news[i] = queue.New{Dialect: task.Job, Job: "/plain", Priority: luck.Int64N(10)}
	}
	fill(t, all, news)
	starts, short := drain(t, all, n)
	for i := range starts {
		worse, passed := &starts[i], 0
		for j := range starts {
			if better := &starts[j]; better.began > worse.end && before(&better.task, &worse.task) < 0 {
				passed++
			}
		}
		for _, other := range short {
			if other.overlaps(worse.span) {
				passed -= each
			}
		}
		if passed > 0 {
			t.Fatalf("a task of priority %d was started while %d before it were ready that no claim under way has started", worse.task.Priority, passed)
		}
	}
}

// Eight processes give each key of a round-robin queue its share: at no time does it differ by more than what the claims under way start.
func TestEightProcessesTakeTurns(t *testing.T) {
	t.Parallel()
	const tasks = 240 // of each key
	set := &definition.Set{Queues: []definition.Queue{{Name: "fair", Type: definition.RoundRobin, Weights: map[string]int{"/a": 3, "/b": 2}}}}
	shares := map[string]float64{"/a": 3. / 6, "/b": 2. / 6, "/c": 1. / 6}
	var news []queue.New
	for path := range shares {
		set.Jobs = append(set.Jobs, definition.Job{Path: path, Target: definition.Target{Go: "f"}, Queue: "fair"})
		for range tasks {
			news = append(news, queue.New{Dialect: task.Job, Job: path})
		}
	}
	all := eight(t, set)
	fill(t, all, news)
	counts := map[string]int{}
	starts, _ := drain(t, all, len(news))
	for i, s := range starts {
		counts[s.task.Job]++
		if i+1+underWay > 2*tasks { // tasks of /a may run out
			break
		}
		for path, share := range shares {
			if want := float64(i+1) * share; float64(counts[path]) > want+underWay || float64(counts[path]) < want-underWay {
				t.Fatalf("of the first %d starts %d are of %s, want %.0f ± %d", i+1, counts[path], path, want, underWay)
			}
		}
	}
}
