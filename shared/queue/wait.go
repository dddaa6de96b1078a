package queue

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/notifier"
	"github.com/millrace/millrace/shared/queue/layout"
)

// Waiting is one wait of an instance for tasks that become ready. It begins before the instance claims, so that no task is
// missed in between:
//
//	for again := true; again; {
//		w := q.Wait(by)
//		leases, err := q.Claim(ctx, by, max)
//		// if there are some, or an error: w.End(), and done. Otherwise:
//		<-w.Ready() // or give up, with w.End()
//		again = w.Looks()
//	}
//
// A Waiting costs a few hundred bytes and no goroutine of its own. Each task that becomes ready wakes one instance that may run it,
// the one that has waited longest.
type Waiting struct {
	q     *Queue
	by    Claimer
	ready chan struct{}
	woken bool        // by a line or a free slot, not since this process is about to stop
	line  layout.Line // in which a task became ready; zero if a slot became free
	turn  uint64      // rises with each wait of the process
	mark  Mark        // when it began

	accepts  *acceptance // nil: it claims by itself
	handing  bool        // tasks are being started for it, and ready is closed afterwards
	reserved Mark        // when that began
	leases   []Lease     // of tasks that were started for it
	err      error       // some may have been started

	isExpected bool          // it was made by Expect
	begins     chan struct{} // closed when an expected wait begins, or will not; nil: it has been
	until      time.Time     // after which an expected wait does not begin any more; zero: none
}

// acceptance is what may be started for one that waits.
type acceptance struct {
	by  Claimer
	max int
}

// Accept lets up to max tasks that are added from here on be started for the instance, in the write that adds them, while it waits.
// [Waiting.Leases] has them once Ready is closed, or once the wait has ended. by.Beside, if there is one, is used until then.
func (w *Waiting) Accept(by Claimer, max int) {
	s := &w.q.waiters
	s.mu.Lock()
	defer s.mu.Unlock()
	if by.Once == nil && max > 0 {
		w.accepts = &acceptance{by, max}
	}
}

// Leases returns what was started for the instance while it waited: after Ready is closed, or after End. With an error, tasks may have
// been started; their leases run out.
func (w *Waiting) Leases() ([]Lease, error) { return w.leases, w.err }

// Ready returns a channel that is closed when the instance should claim again, which may find no task.
func (w *Waiting) Ready() <-chan struct{} { return w.ready }

// End ends the wait. If it was woken, and the instance has not claimed since, the next that waits is woken.
func (w *Waiting) End() { w.q.waiters.leave(w, false) }

// Looks ends the wait of an instance that was woken and claims again; if it does not claim after all, End wakes the next that waits.
// It returns false if the instance was woken because this process is about to stop.
func (w *Waiting) Looks() bool {
	w.q.waiters.leave(w, !w.q.waiters.isFull(w.by.Instance))
	return w.woken
}

// Wait begins to wait for tasks of the claimer's jobs.
func (q *Queue) Wait(by Claimer) *Waiting {
	w := &Waiting{q: q, by: by, ready: make(chan struct{})}
	q.waiters.enter(q, w)
	return w
}

// Mark is a moment of a process, see [Queue.Mark].
type Mark struct{ calls uint64 }

// Mark returns the present moment.
func (q *Queue) Mark() Mark {
	s := &q.waiters
	s.mu.Lock()
	defer s.mu.Unlock()
	return Mark{s.calls.newest}
}

// Mark returns the moment at which the wait began.
func (w *Waiting) Mark() Mark { return w.mark }

// IsQuiet reports whether nothing has become ready since a moment that the instance may claim, as far as this process was told. An
// instance that has claimed in vain after that moment, and waits again, then need not claim first: what other processes make ready
// without telling it is found as in any other wait.
func (w *Waiting) IsQuiet(since Mark) bool { return w.q.IsQuiet(w.by, since) }

// IsQuiet is [Waiting.IsQuiet] of a claimer that need not wait.
func (q *Queue) IsQuiet(by Claimer, since Mark) bool {
	s := &q.waiters
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls.areQuiet(&by, since)
}

// Rouse wakes all that wait as an instance, since the tasks that it may claim have changed.
func (q *Queue) Rouse(instance string) { q.waiters.rouseAll(instance) }

// Drain ends every [Queue.Wait], also later ones, for a process that is about to stop.
func (q *Queue) Drain() { q.waiters.drain() }

// waiters holds the waits of this process, the longest first.
type waiters struct {
	mu       sync.Mutex
	all      []*Waiting
	turn     uint64                 // of the newest wait
	from     map[layout.Line]uint64 // by line: no wait before this turn takes from it, so that each wait is asked once for each line
	expected []*Waiting             // are about to begin, and no addition waits for that
	ended    bool
	stop     context.CancelFunc       // of the look-out; nil while there is none
	full     map[string]bool          // instances that have no free slot
	looks    map[string][]layout.Line // by instance: the lines for which it was woken since its last claim
	calls    calls
}

func (s *waiters) enter(q *Queue, w *Waiting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		close(w.ready)
		return
	}
	s.turn++
	w.turn, w.mark = s.turn, Mark{s.calls.newest}
	s.all = append(s.all, w)
	if s.stop == nil {
		s.stop = q.strategy.lookOut()
	}
}

func (s *waiters) leave(w *Waiting, looks bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expectNoMore(w)
	if w.handing {
		s.mu.Unlock()
		<-w.ready
		s.mu.Lock()
	}
	if i := slices.Index(s.all, w); i >= 0 {
		s.all = slices.Delete(s.all, i, i+1)
	}
	switch {
	case !w.woken:
	case looks:
		s.looksFor(&w.by, w.line)
	default:
		s.looksNoMore(&w.by, w.line)
		s.wake(w.line)
	}
	if len(s.all) == 0 && s.stop != nil {
		s.stop()
		s.stop = nil
	}
}

// wake wakes the first that takes from the line and has a free slot, and reports whether there is one. The caller holds mu.
func (s *waiters) wake(l layout.Line) bool {
	s.calls.add(l)
	for i := s.first(l); i < len(s.all); i++ {
		if w := s.all[i]; w.by.takes(l) && !s.full[w.by.Instance] {
			s.rouse(i, l)
			return true
		}
	}
	return false
}

// reserve takes out the wait that would be woken for a task in a line, so that tasks are started for it; nil if it does not accept that. If none
// waits, it returns one that is expected to. Either is followed by give or free.
func (s *waiters) reserve(l layout.Line) (*Waiting, *awaited) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := s.first(l); i < len(s.all); i++ {
		w := s.all[i]
		if !w.by.takes(l) || s.full[w.by.Instance] {
			continue
		}
		if w.accepts == nil {
			return nil, nil
		}
		s.all = slices.Delete(s.all, i, i+1)
		w.handing, w.reserved = true, Mark{s.calls.newest}
		return w, nil
	}
	return nil, s.await(l)
}

// give ends a wait that was reserved: tasks were started for it, or may have been if there is an error.
func (s *waiters) give(w *Waiting, leases []Lease, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.handing, w.leases, w.err = false, leases, err
	close(w.ready)
}

// free wakes one that was reserved, and was given nothing: it claims by itself, since it may have missed a wake meanwhile. One that was expected
// has missed none.
func (s *waiters) free(w *Waiting, l layout.Line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.handing {
		w.handing, w.woken, w.line = false, !s.ended && !w.isExpected, l
		close(w.ready)
	}
}

// mayTake reports whether any instance that waits, or is expected to, takes from a line.
func (s *waiters) mayTake(l layout.Line) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.first(l) < len(s.all) || s.expects(l) != nil
}

// take reports whether any waiting instance takes from a line.
func (s *waiters) take(l layout.Line) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.first(l) < len(s.all)
}

// maxLinesKnown bounds what is remembered of lines, which come and go.
const maxLinesKnown = 10_000

// first returns the index of the wait that takes from a line and is the longest; len(s.all) if none does. It asks only those that it
// has not asked before for that line. The caller holds mu.
func (s *waiters) first(l layout.Line) int {
	if s.from == nil || len(s.from) > maxLinesKnown {
		s.from = map[layout.Line]uint64{}
	}
	i, _ := slices.BinarySearchFunc(s.all, s.from[l], func(w *Waiting, turn uint64) int { return cmp.Compare(w.turn, turn) })
	for i < len(s.all) && !s.all[i].by.takes(l) {
		i++
	}
	if s.from[l] = s.turn + 1; i < len(s.all) {
		s.from[l] = s.all[i].turn
	}
	return i
}

// rouse wakes one of those that wait. The caller holds mu.
func (s *waiters) rouse(i int, l layout.Line) {
	w := s.all[i]
	s.all = slices.Delete(s.all, i, i+1)
	w.woken, w.line = true, l
	close(w.ready)
}

// rouseAll wakes all that wait as an instance.
func (s *waiters) rouseAll(instance string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls.addAll()
	delete(s.full, instance)
	for i := len(s.all) - 1; i >= 0; i-- {
		if s.all[i].by.Instance == instance {
			s.rouse(i, layout.Line{})
		}
	}
}

// fill notes that an instance has no free slot: it is not woken for tasks until it has one.
func (s *waiters) fill(instance string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.full == nil {
		s.full = map[string]bool{}
	}
	s.full[instance] = true
}

// isFull reports whether an instance had no free slot when that was read last.
func (s *waiters) isFull(instance string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.full[instance]
}

// empty notes that an instance has a free slot, and wakes it if it waits.
func (s *waiters) empty(instance string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.full[instance] {
		return
	}
	delete(s.full, instance)
	s.calls.addAll()
	for i, w := range s.all {
		if w.by.Instance == instance {
			s.rouse(i, layout.Line{})
			return
		}
	}
}

// refill forgets which instances have no free slot, since other processes end leases too.
func (s *waiters) refill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.full)
}

func (s *waiters) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for _, w := range s.all {
		close(w.ready)
	}
	s.all = nil
	for len(s.expected) > 0 {
		s.expectNoMore(s.expected[0])
	}
	if s.stop != nil {
		s.stop()
		s.stop = nil
	}
}

// hear wakes waiting instances for the notifications of their lines that are due. It returns those for the notifier, the ones of lines
// that servers take from, and those for which no instance waits here.
func (s *waiters) hear(notices []notifier.Notice, now time.Time) (servers, elsewhere []notifier.Notice) {
	if !slices.ContainsFunc(notices, func(n notifier.Notice) bool { return layout.ParseLine(n.Queue).ForInstances() }) {
		return notices, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	servers = make([]notifier.Notice, 0, len(notices))
	for _, notice := range notices {
		switch l := layout.ParseLine(notice.Queue); {
		case !l.ForInstances():
			servers = append(servers, notice)
		case notice.At.After(now):
		case !s.wake(l):
			elsewhere = append(elsewhere, notice)
		}
	}
	return servers, elsewhere
}

// lookEvery is how often a process looks for tasks that other processes have made ready.
const lookEvery = time.Second

// lookOut looks, while instances wait, for tasks that other processes have made ready: a process reads each line once a second,
// however many wait in it. It also ends leases that run out, so that waiting instances get their tasks before the next sweep.
func (q *Queue) lookOut(ctx context.Context) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := q.look(ctx); ctx.Err() == nil {
			q.outlook.tell(q.log, err)
		}
	}
}

// tellEvery is how often the log repeats that something which is tried each second still fails.
const tellEvery = 10 * time.Minute

// outlook is whether looks succeed. A clock that is off, or a store that is away, fails each of them for as long as it is so.
type outlook struct {
	mu   sync.Mutex // a look-out may begin while the one before ends
	told time.Time  // when the log last said that they fail; zero while they succeed
}

// tell logs the result of a look if it is news: the first failure, one each tellEvery, and the first success.
func (o *outlook) tell(log *slog.Logger, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case err == nil && !o.told.IsZero():
		o.told = time.Time{}
		log.Info("tasks for instances that wait are found in time again")
	case err != nil && time.Since(o.told) >= tellEvery:
		o.told = time.Now()
		log.Warn("tasks for instances that wait may be found late", "error", err)
	}
}

// endLeases ends all leases that have run out, if one that this process has given or seen is over; otherwise it does not call the
// store. A process that does not sweep may never have folded the journal, and leaves it so.
func (q *Queue) endLeases(ctx context.Context) error {
	now := q.micro()
	if !q.alarms.over(&q.alarms.leases, now) {
		return nil
	}
	_, next, err := q.sweepLeases(ctx, !q.sweeps.Load())
	switch {
	case err != nil:
		q.wakeForLease(now) // at the next look
	case next != 0:
		q.wakeForLease(next)
	}
	return err
}

// look wakes waiting instances for what is ready, and ends leases that are over, which wakes them too. An error of the one does not keep the other.
func (q *Queue) look(ctx context.Context) error {
	err := q.lookForReady(ctx)
	return errors.Join(err, q.endLeases(ctx))
}

func (q *Queue) lookForReady(ctx context.Context) error {
	if _, err := q.Promote(ctx); err != nil {
		return err
	}
	q.waiters.refill()
	lines, err := q.known.Lines(ctx)
	if err != nil {
		return err
	}
	for _, l := range lines {
		if !l.ForInstances() || !q.waiters.take(l) {
			continue
		}
		notices, _, _, err := q.noticesReady(ctx, l)
		if err != nil {
			return err
		}
		q.waiters.hear(notices, q.now())
	}
	return nil
}
