package queue

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/bell"
)

// Waiting is an instance's interest in tasks that become ready. It begins before the instance looks for tasks, so that none
// is missed in between:
//
//	for again := true; again; {
//		w := q.Wait(by)
//		leases, err := q.Claim(ctx, by, max)
//		// if there are some, or an error: w.End(), and done. Otherwise:
//		<-w.Ready() // or give up, with w.End()
//		again = w.Looks()
//	}
//
// One that waits costs a few hundred bytes and does nothing. Each task that becomes ready wakes one of those that may run
// it, the one that has waited longest.
type Waiting struct {
	q     *Queue
	by    Claimer
	ready chan struct{}
	line  string // in which a task became ready; "" while none has
}

// Ready returns a channel that is closed when it is worth looking again, which may turn out to be for nothing.
func (w *Waiting) Ready() <-chan struct{} { return w.ready }

// End ends the interest. What it was woken for and has not looked at is passed on to the next that waits.
func (w *Waiting) End() { w.q.waiters.leave(w, false) }

// Looks ends the interest of one that was woken and looks again; false says that it was woken because this process is about
// to stop.
func (w *Waiting) Looks() bool {
	w.q.waiters.leave(w, !w.q.waiters.isFull(w.by.Instance))
	return w.line != ""
}

// Wait begins to wait for tasks that the claimer may run, from the lines of its jobs.
func (q *Queue) Wait(by Claimer) *Waiting {
	w := &Waiting{q: q, by: by, ready: make(chan struct{})}
	q.waiters.enter(q, w)
	return w
}

// Rouse wakes whoever waits as an instance: what it may claim has changed.
func (q *Queue) Rouse(instance string) { q.waiters.rouseAll(instance) }

// Drain ends every [Queue.Wait], those to come too: for a process that is about to stop.
func (q *Queue) Drain() { q.waiters.drain() }

// waiters are those that wait in this process, the one that has waited longest first.
type waiters struct {
	mu    sync.Mutex
	all   []*Waiting
	ended bool
	stop  context.CancelFunc // of the look-out; nil while there is none
	full  map[string]bool    // instances that have no room
}

func (s *waiters) enter(q *Queue, w *Waiting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		close(w.ready)
		return
	}
	s.all = append(s.all, w)
	if s.stop == nil && !q.store.Exclusive() {
		var ctx context.Context
		ctx, s.stop = context.WithCancel(context.Background())
		go q.lookOut(ctx)
	}
}

func (s *waiters) leave(w *Waiting, looks bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.all, w); i >= 0 {
		s.all = slices.Delete(s.all, i, i+1)
	}
	if w.line != "" && !looks {
		s.wake(w.line)
	}
	if len(s.all) == 0 && s.stop != nil {
		s.stop()
		s.stop = nil
	}
}

// wake wakes the first that takes from the line. The caller holds mu.
func (s *waiters) wake(line string) {
	for i, w := range s.all {
		if w.by.takes(line) && !s.full[w.by.Instance] {
			s.rouse(i, line)
			return
		}
	}
}

// take reports whether any that waits takes from a line.
func (s *waiters) take(line string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.all, func(w *Waiting) bool { return w.by.takes(line) })
}

// rouse wakes one of those that wait. The caller holds mu.
func (s *waiters) rouse(i int, line string) {
	w := s.all[i]
	s.all = slices.Delete(s.all, i, i+1)
	w.line = line
	close(w.ready)
}

// rouseAll wakes those that wait as an instance.
func (s *waiters) rouseAll(instance string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.full, instance)
	for i := len(s.all) - 1; i >= 0; i-- {
		if s.all[i].by.Instance == instance {
			s.rouse(i, roomLine)
		}
	}
}

func (s *waiters) isFull(instance string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.full[instance]
}

func (s *waiters) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for _, w := range s.all {
		close(w.ready)
	}
	s.all = nil
	if s.stop != nil {
		s.stop()
		s.stop = nil
	}
}

// hear wakes whoever waits for what is rung for now, and returns the rings that are for the bell: nobody whom it wakes
// takes from the lines of instances.
func (s *waiters) hear(rings []bell.Ring, now time.Time) []bell.Ring {
	if !slices.ContainsFunc(rings, func(r bell.Ring) bool { return forInstances(r.Queue) }) {
		return rings
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	others := make([]bell.Ring, 0, len(rings))
	for _, ring := range rings {
		switch {
		case !forInstances(ring.Queue):
			others = append(others, ring)
		case !ring.At.After(now):
			s.wake(ring.Queue)
		}
	}
	return others
}

// forInstances reports whether a line is of a job that instances run.
func forInstances(line string) bool {
	_, _, ok := splitLine(line)
	return ok
}

// lookEvery is how often a process looks for what others have made ready.
const lookEvery = time.Second

// lookOut looks, while anybody waits, for tasks that other processes have made ready: one process costs a read of each line
// a second, however many wait in it. It ends leases that run out, too, so that those who wait have their tasks at once and
// need not wait for the next sweep.
func (q *Queue) lookOut(ctx context.Context) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := q.look(ctx); err != nil && ctx.Err() == nil {
			q.log.Warn("tasks for instances that wait may be found late", "error", err)
		}
	}
}

// endLeases ends what has run out if a lease is over that this process has given or seen; else it asks the store nothing.
func (q *Queue) endLeases(ctx context.Context) error {
	now := q.micro()
	if !q.alarms.over(&q.alarms.leases, now) {
		return nil
	}
	_, next, err := q.sweepLeases(ctx)
	switch {
	case err != nil:
		q.wakeForLease(now) // at the next look
	case next != 0:
		q.wakeForLease(next)
	}
	return err
}

func (q *Queue) look(ctx context.Context) error {
	if err := q.endLeases(ctx); err != nil {
		return err
	}
	if _, err := q.Promote(ctx); err != nil {
		return err
	}
	q.waiters.refill()
	lines, err := q.lines(ctx)
	if err != nil {
		return err
	}
	for _, line := range lines {
		if !forInstances(line) || !q.waiters.take(line) {
			continue
		}
		rings, err := q.ringsReady(ctx, line)
		if err != nil {
			return err
		}
		q.waiters.hear(rings, q.now())
	}
	return nil
}
