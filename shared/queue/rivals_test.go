package queue_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store/faulty"
	"github.com/millrace/millrace/shared/task"
)

// rivals are processes that claim at once from one store, each over a connection of its own that takes some time.
type rivals struct {
	processes int
	instances int      // with a capacity, for which each process claims; 0: for none, but for itself
	onePart   bool     // the store has no partitions
	jobs      []string // that they run, each as an instance; none: as servers
	each      int      // tasks that a claim wants
	tasks     int      // ready tasks
	writes    float64  // the most writes for each task
}

// race lets them claim the ready tasks of b until they get none. Each task must be started once, and no claim may get none while
// more are left than the others may be starting. It needs virtual time.
func (r *rivals) race(b *bench, d queue.Definitions) {
	b.t.Helper()
	counted := &writes{Store: b.store}
	way := faulty.Spread{Min: time.Millisecond, Max: 5 * time.Millisecond}
	service := faulty.NewService(counted, faulty.Faults{Seed: 1, There: way, Back: way}, nil)
	tally := &starts{times: map[task.ID]int{}}
	var group sync.WaitGroup
	for n := range r.processes {
		line := service.Process(fmt.Sprint(n))
		j := journal.Open(line, journal.Options{Folds: projection.Folds()})
		q := queue.Open(queue.Options{Store: line, Journal: j, Definitions: d, OnePart: r.onePart})
		defer func() { _ = j.Close() }()
		for i := range max(r.instances, 1) {
			by := queue.Claimer{Instance: fmt.Sprint(n), Jobs: r.jobs}
			if r.instances > 0 {
				by.Instance, by.Capacity = fmt.Sprint(n, "/", i), r.tasks
			}
			group.Go(func() { r.drain(b, q, by, tally) })
		}
	}
	group.Wait()
	tally.judge(b.t, r.tasks)
	if writes := float64(counted.calls.Load()) / float64(r.tasks); writes > r.writes {
		b.t.Errorf("%.2f writes for each task, want at most %v", writes, r.writes)
	} else {
		b.t.Logf("%.2f writes for each task", writes)
	}
}

// drain claims until there is nothing.
func (r *rivals) drain(b *bench, q *queue.Queue, by queue.Claimer, tally *starts) {
	for {
		leases, err := q.Claim(b.t.Context(), by, r.each)
		if err != nil {
			b.t.Error(err)
		}
		left := r.tasks - tally.add(leases)
		if under := r.processes * max(r.instances, 1) * r.each; len(leases) == 0 && left > under {
			b.t.Errorf("a claim came back with nothing while %d tasks were ready, and others were about to start %d at most", left, under)
		}
		if len(leases) == 0 {
			return
		}
		time.Sleep(20 * time.Millisecond) // of virtual time: what was claimed is done
	}
}

// starts counts how often each task was started.
type starts struct {
	mu    sync.Mutex
	times map[task.ID]int
}

// add notes the starts of a claim, and returns how many tasks were started so far.
func (s *starts) add(leases []queue.Lease) (tasks int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range leases {
		s.times[leases[i].Task.ID]++
	}
	return len(s.times)
}

// judge checks that so many tasks were started, each once.
func (s *starts) judge(t *testing.T, tasks int) {
	t.Helper()
	for id, times := range s.times {
		if times > 1 {
			t.Errorf("task %s was started %d times", id, times)
		}
	}
	if len(s.times) != tasks {
		t.Errorf("%d tasks were started, want %d: claims came back with nothing while tasks were ready", len(s.times), tasks)
	}
}
