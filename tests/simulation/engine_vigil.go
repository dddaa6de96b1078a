package simulation

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/task"
)

// vigil demands that no instance of a process that has the store to itself waits for long beside a task that it may run.
type vigil struct {
	s        *shift
	patience time.Duration // how long it may wait

	mu     sync.Mutex
	idle   map[string]queue.Claimer // who waits, by actor
	waited map[string]int           // how often each has waited
	closed map[string]bool          // jobs that are perhaps held
	beside map[string]time.Time     // since when somebody waits beside a task
}

// watchEvery is how often the watch looks.
const watchEvery = 50 * time.Millisecond

func newVigil(s *shift) *vigil {
	return &vigil{
		s: s, patience: time.Second, idle: map[string]queue.Claimer{}, waited: map[string]int{}, closed: map[string]bool{},
		beside: map[string]time.Time{},
	}
}

func (w *vigil) waits(name string, by queue.Claimer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.idle[name] = by
	w.waited[name]++
}

func (w *vigil) goesOn(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.idle, name)
}

// shut notes that a job is held from now on, or not any longer.
func (w *vigil) shut(job string, held bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed[job] = held
}

// look compares who waits with what is ready, until the shift is over.
func (w *vigil) look() {
	for ; !w.s.isOver(); time.Sleep(watchEvery) {
		if !w.s.plan.alone {
			continue // processes that share a store find each other's tasks by looking
		}
		w.compare(w.s.ledger.startable())
		for _, token := range w.s.ledger.overdue(w.patience) {
			w.s.report("woken", "the lease %s is over for more than %v, and held", token, w.patience)
		}
	}
}

func (w *vigil) compare(ready startable) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.beside
	w.beside = map[string]time.Time{}
	for name, by := range w.idle {
		if ready.running[by.Instance] >= by.Capacity {
			continue
		}
		for _, t := range ready.tasks {
			if !runs(by, t.Job) || w.closed[t.Job] {
				continue
			}
			pair := fmt.Sprintf("%s, for the %d. time, beside %s of %s, %s after attempt %d", name, w.waited[name], t.ID, t.Job, t.State, t.Attempt)
			since, known := before[pair]
			if !known {
				since = time.Now()
			}
			if w.beside[pair] = since; time.Since(since) > w.patience {
				w.s.report("woken", "%s waits %s for more than %v", by.Instance, pair, w.patience)
				delete(w.beside, pair)
			}
		}
	}
}

// runs reports whether a claimer runs a job.
func runs(by queue.Claimer, job string) bool {
	return slices.Contains(by.Jobs, job) || slices.Contains(by.Jobs, "/far/*") && strings.HasPrefix(job, "/far/")
}

// startable is what could be started if no job were held.
type startable struct {
	tasks   []task.Task    // that are queued and due, and for which limits have a slot, or whose lease is over
	running map[string]int // by instance
}

// startable returns what could be started now.
func (l *ledger) startable() startable {
	l.mu.Lock()
	defer l.mu.Unlock()
	found, running, now := startable{running: map[string]int{}}, map[string]int{}, time.Now()
	for _, uuid := range l.order {
		if t := &l.now(uuid).task; t.State == task.Running {
			found.running[t.Instance]++
			running[t.Queue]++
			if t.Concurrency != nil {
				running["key "+t.Concurrency.Key]++
			}
		}
	}
	for _, uuid := range slices.Sorted(slices.Values(l.order)) { // as they were created
		t := &l.now(uuid).task
		if !t.State.Queued() {
			continue
		}
		blocked := t.NotBefore > now.UnixMicro() || limits[t.Queue] > 0 && running[t.Queue] >= limits[t.Queue] ||
			t.Concurrency != nil && running["key "+t.Concurrency.Key] >= t.Concurrency.Limit
		if t.Queue == "strict" {
			running[t.Queue]++ // nothing overtakes it
		}
		if !blocked {
			found.tasks = append(found.tasks, *t)
		}
	}
	return found
}

// leased reports whether a lease is held.
func (l *ledger) leased(token string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.holds(token)
}

// overdue returns the leases that have been over for longer than by.
func (l *ledger) overdue(by time.Duration) (tokens []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, item := range l.items {
		if !strings.HasPrefix(key.Partition, "task/") {
			continue
		}
		if lease, token := l.leaseOf(&item); lease != nil && time.Since(time.UnixMicro(lease.Expires)) > by {
			tokens = append(tokens, token)
		}
	}
	return tokens
}
