package schedule

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/shared/clock"
	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// The errors of a Scheduler's methods, besides those of packages journal and queue.
var (
	// ErrNoSchedule is returned if no schedule of that name is declared.
	ErrNoSchedule = errors.New("schedule: no such schedule")

	// ErrRange is returned by Backfill for a range that has no ticks, too many, or ends in the future.
	ErrRange = errors.New("schedule: range")
)

// Engine takes tasks; a [queue.Queue] is one.
type Engine interface {
	Enqueue(ctx context.Context, once *queue.Once, news ...queue.New) (queue.Enqueued, error)
	Withdraw(ctx context.Context, cause event.ID, ids ...task.ID) (int, error)
}

// Options are those of a Scheduler. All but Orders, Clock, Now and Log are required.
type Options struct {
	Store       store.Store       // where states are kept
	Journal     *journal.Journal  // on the same store
	Queue       Engine            // on the same store
	Orders      Orders            // the same, of schedules that make orders; default: these fail
	Definitions queue.Definitions // the set in force
	Clock       *clock.Watch      // checks this process's clock before it decides for others; default: no check
	Now         func() time.Time  // default: that of Clock
	Log         *slog.Logger      // default: nothing is logged
}

// Scheduler is one process's access to the schedules. Its methods may be called concurrently, and in many processes.
type Scheduler struct {
	o       Options
	resumed atomic.Bool // a schedule was resumed, which may be due before Run's next look
	late    atomic.Int64

	presence presence

	mu     sync.Mutex
	of     *definition.Set
	agenda agenda
}

// agenda is the schedules of a set.
type agenda struct {
	revision int64 // of the set
	plans    map[string]*plan
	broken   map[string]bool // those that cannot be read
	empties  bool            // the set before had schedules, and this one has none
	declared *declarations   // by what the set came into force
}

// declares reports whether there is a schedule of that name, readable or not.
func (a *agenda) declares(name string) bool { return a.plans[name] != nil || a.broken[name] }

// Open returns a Scheduler. Nothing is read or written yet.
func Open(o Options) *Scheduler {
	if o.Now == nil {
		o.Now = o.Clock.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Store = store.NewChecked(o.Store)
	return &Scheduler{o: o}
}

// compiled returns the agenda of the set in force. A schedule that cannot be read is logged; it stops no other.
func (s *Scheduler) compiled(ctx context.Context) (agenda, error) {
	set, err := s.o.Definitions.Current(ctx)
	if err != nil {
		return agenda{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == set {
		return s.agenda, nil
	}
	before := s.agenda.plans
	a := agenda{revision: set.Revision(), plans: map[string]*plan{}, broken: map[string]bool{}}
	for _, declared := range All(set) {
		if p := before[declared.Name]; p != nil && reflect.DeepEqual(p.Schedule, declared) {
			a.plans[declared.Name] = p
			continue
		}
		p, err := compile(declared)
		if err != nil {
			s.o.Log.Error("a schedule cannot be followed", "schedule", declared.Name, "error", err)
			a.broken[declared.Name] = true
			continue
		}
		a.plans[declared.Name] = p
	}
	a.declared = &declarations{journal: s.o.Journal, revision: a.revision}
	a.empties = len(before) > 0 && len(a.plans) == 0
	s.of, s.agenda = set, a
	return a, nil
}

// Made is the result of a look at the schedules.
type Made struct {
	Ticks int       // how many tasks were made
	Next  time.Time // the time of the next tick that was not made yet; zero: there is none
}

// Make makes the ticks that fall due up to until, as tasks that wait for their time. It may run in several processes at
// once, twice for the same time, and be cut off anywhere: each tick is one task. A schedule that fails stops no other; the
// error joins what failed. If the process's clock is off, the error wraps a [clock.Skew] and [journal.ErrUnavailable], and no
// tick is made or given up.
func (s *Scheduler) Make(ctx context.Context, until time.Time) (Made, error) {
	a, err := s.compiled(ctx)
	if err != nil || len(a.plans) == 0 && !a.empties {
		return Made{}, err
	}
	return s.look(ctx, a, until)
}

// Late returns how often this process has found a schedule with ticks whose time had passed while no process could make them.
func (s *Scheduler) Late() int64 { return s.late.Load() }

// Redeclared applies definitions that have just changed: ticks that were made ahead of schedules that are removed or declared
// anew are withdrawn, and those that fall due soon are made.
func (s *Scheduler) Redeclared(ctx context.Context) error {
	a, err := s.compiled(ctx)
	if err != nil {
		return err
	}
	_, err = s.look(ctx, a, s.o.Now().Add(s.ahead()))
	return err
}

func (s *Scheduler) look(ctx context.Context, a agenda, until time.Time) (Made, error) {
	w := s.window(until) // before the clock is judged: a jump that comes later does not change it
	if err := s.mayDecide(ctx); err != nil {
		return Made{}, err
	}
	known, err := s.states(ctx)
	if err != nil {
		return Made{}, err
	}
	look := &look{s: s, agenda: a, window: w}
	look.run(journal.WithActor(ctx, ""), known) // what it finds to do is not what its caller has asked for
	if look.errs == nil {
		s.presence.note(look.now)
	}
	return look.made, errors.Join(look.errs...)
}

// mayDecide returns nil if this process's clock is right, so that it may decide which ticks have come.
func (s *Scheduler) mayDecide(ctx context.Context) error {
	if err := s.o.Clock.Check(ctx); err != nil {
		return fmt.Errorf("%w: schedules: %w", journal.ErrUnavailable, err)
	}
	return nil
}

// look is one look at all schedules.
type look struct {
	s *Scheduler
	agenda
	window

	mu   sync.Mutex
	made Made
	errs []error
}

// together is how many schedules are worked on at once, so that their writes can be combined.
const together = 32

func (l *look) run(ctx context.Context, known map[string]stored) {
	gate := make(chan struct{}, together)
	var group sync.WaitGroup
	work := func(name string, do func() error) {
		gate <- struct{}{}
		group.Go(func() {
			defer func() { <-gate }()
			l.failed(name, do())
		})
	}
	for name, p := range l.plans {
		state, there := known[name]
		if !there {
			state = stored{state: stateOf(name, l.now)}
		}
		if there && l.idle(p, &state) {
			continue
		}
		work(name, func() error { return l.advance(ctx, p, state) })
	}
	for name, state := range known {
		if !l.declares(name) && state.Revision <= l.revision {
			work(name, func() error { return l.retire(ctx, &state) })
		}
	}
	group.Wait()
}

// failed notes the error of a schedule, if there is one.
func (l *look) failed(name string, err error) {
	if err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.errs = append(l.errs, fmt.Errorf("schedule %s: %w", name, err))
	}
}

func stateOf(name string, now time.Time) state {
	return state{Name: name, Since: now.UnixMicro(), Until: now.UnixMicro()}
}

// idle reports whether there is nothing to do for a schedule in this look, and notes its next tick. A schedule whose state is of a
// newer set than this process knows is left to other processes.
func (l *look) idle(p *plan, state *stored) bool {
	switch {
	case state.Revision > l.revision:
		return true
	case state.Suspended:
		return state.Until <= l.now.UnixMicro()
	case !state.follows(p):
		return false
	}
	next, ok := p.next(&state.state)
	if ok && !next.After(l.until) {
		return false
	}
	l.note(0, next, ok)
	return true
}

func (l *look) note(ticks int, next time.Time, more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.made.Ticks += ticks
	if more && (l.made.Next.IsZero() || next.Before(l.made.Next)) {
		l.made.Next = next
	}
}

// advance makes the ticks of one schedule and remembers it. Before that, it withdraws those that were made ahead by another
// declaration; of a suspended schedule it only withdraws.
func (l *look) advance(ctx context.Context, p *plan, state stored) error {
	if state.Suspended {
		return l.s.suspended(ctx, p, &state, l.now)
	}
	if !state.follows(p) || state.Cause == 0 {
		cause, err := l.declared.of(ctx, declarer(p.Name, p.Job))
		if err != nil {
			return err
		}
		state.Cause = cause
	}
	if !state.follows(p) {
		if err := l.s.retract(ctx, p, &state, l.now, l.now); err != nil {
			return err
		}
	}
	state.Of, state.Revision = &p.spec, l.revision
	made, err := l.s.advance(ctx, p, &state, l.window)
	if err != nil {
		return err
	}
	next, ok := p.next(&state.state)
	l.note(made, next, ok)
	return nil
}

// advance makes the ticks first, each once by its id, and then remembers up to when: if it is cut off between the two, the
// next look makes none twice.
func (s *Scheduler) advance(ctx context.Context, p *plan, state *stored, w window) (made int, err error) {
	d, firedAt := p.dueFrom(state, w)
	if made, err = s.make(ctx, p, state.Cause, d.times); err != nil {
		return made, err
	}
	state.FiredAt = firedAt
	state.Until = w.until.UnixMicro()
	if d.more {
		state.Until = firedAt
	}
	err = s.remember(ctx, state, p.told(d, state.Cause))
	switch {
	case errors.Is(err, errBeaten):
		err = s.yield(ctx, p, d.times, w.now)
	case err == nil && d.missed:
		s.late.Add(1)
	}
	return made, err
}

// dueFrom returns the ticks that are due, and the newest of all afterwards. A handler's interval begins with its stored state,
// so that every process uses the same time.
func (p *plan) dueFrom(state *stored, w window) (d ticks, firedAt int64) {
	switch {
	case p.interval > 0 && state.version == 0:
		return d, 0
	case p.interval > 0:
		return p.dueAgain(&state.state, w)
	}
	d = p.due(at(state.Until), w)
	if n := len(d.times); n > 0 {
		return d, d.times[n-1].UnixMicro()
	}
	return d, state.FiredAt
}

// make enqueues ticks, and returns how many of them are new. cause is the event that brings them about.
func (s *Scheduler) make(ctx context.Context, p *plan, cause event.ID, times []time.Time) (made int, err error) {
	if p.Order != nil {
		return s.start(ctx, p, times)
	}
	for batch := range slices.Chunk(times, queue.MaxBatch) {
		answer, err := s.o.Queue.Enqueue(ctx, nil, p.requests(cause, batch)...)
		if err != nil {
			return made, err
		}
		made += fresh(answer)
	}
	return made, nil
}

// fresh returns how many tasks are new.
func fresh(answer queue.Enqueued) (n int) {
	for i := range answer.Tasks {
		if !answer.Tasks[i].Existing {
			n++
		}
	}
	return n
}

// remember writes a schedule's state with the events of what was decided. The condition closes a race: of two looks at once,
// one writes; the other has made the same ticks, which are there already, and its state is refused with errBeaten.
func (s *Scheduler) remember(ctx context.Context, state *stored, events []event.Event) error {
	_, err := s.o.Journal.Write(ctx, func(_ context.Context, lost *store.Conflict) (journal.Change, error) {
		if lost != nil {
			return journal.Change{}, errBeaten
		}
		return journal.Change{Events: events, Ops: func(journal.Receipt) []store.Op { return []store.Op{state.op()} }}, nil
	})
	return err
}

// errBeaten ends a write whose work another process has done.
var errBeaten = errors.New("schedule: another look was quicker")
