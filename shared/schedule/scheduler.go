package schedule

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/shared/clock"
	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
)

// What the methods of a Scheduler answer when they do not answer nil, besides the errors of packages journal and queue.
var (
	// ErrNoSchedule is returned where no schedule of that name is declared.
	ErrNoSchedule = errors.New("schedule: no such schedule")

	// ErrRange is returned for a backfill of nothing or of too much.
	ErrRange = errors.New("schedule: range")
)

// Engine takes tasks; a [queue.Queue] is one.
type Engine interface {
	Enqueue(ctx context.Context, once *queue.Once, news ...queue.New) (queue.Enqueued, error)
}

// Options of a Scheduler. All but Now and Log are needed.
type Options struct {
	Store       store.Store
	Journal     *journal.Journal // on the same store
	Queue       Engine           // on the same store
	Definitions queue.Definitions
	Clock       *clock.Watch     // what says whether this process's clock may decide for others; default: it may
	Now         func() time.Time // default: that of Clock
	Log         *slog.Logger     // default: discards
}

// Scheduler is one process's access to the schedules. Its methods may be called concurrently, and in many processes.
type Scheduler struct {
	o       Options
	resumed atomic.Bool // a schedule goes on that may be due before all that Run knows of

	presence presence

	mu    sync.Mutex
	of    *definition.Set
	plans map[string]*plan
}

// Open answers a Scheduler. Nothing is read or written yet.
func Open(o Options) *Scheduler {
	if o.Now == nil {
		o.Now = o.Clock.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Scheduler{o: o}
}

// compiled answers the plans of the set in force, by name. One that cannot be read is left out and told of; it stops no
// other.
func (s *Scheduler) compiled(ctx context.Context) (map[string]*plan, error) {
	set, err := s.o.Definitions.Current(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == set {
		return s.plans, nil
	}
	before := s.plans
	s.of, s.plans = set, map[string]*plan{}
	for _, declared := range All(set) {
		if p := before[declared.Name]; p != nil && reflect.DeepEqual(p.Schedule, declared) {
			s.plans[declared.Name] = p
			continue
		}
		p, err := compile(declared)
		if err != nil {
			s.o.Log.Error("a schedule cannot be followed", "schedule", declared.Name, "error", err)
			continue
		}
		s.plans[declared.Name] = p
	}
	return s.plans, nil
}

// Made says what a look at the schedules did.
type Made struct {
	Ticks int       // tasks that were made
	Next  time.Time // when the next tick is that was not made yet; zero: there is none
}

// Make makes the ticks that fall due until then, as tasks that wait for their time. It may run in several processes at
// once, twice for the same time, and be cut off anywhere: each tick is one task. A schedule that fails stops no other; the
// error joins what failed. It is a [clock.Skew] where the process's clock is off: nothing is made then, and nothing given up.
func (s *Scheduler) Make(ctx context.Context, until time.Time) (Made, error) {
	plans, err := s.compiled(ctx)
	if err != nil || len(plans) == 0 {
		return Made{}, err
	}
	if err := s.mayDecide(ctx); err != nil {
		return Made{}, err
	}
	known, err := s.states(ctx)
	if err != nil {
		return Made{}, err
	}
	look := &look{s: s, window: s.window(until)}
	look.run(ctx, plans, known)
	if look.errs == nil {
		s.presence.note(look.now)
	}
	return look.made, errors.Join(look.errs...)
}

// mayDecide returns nil if this process may decide by its clock which ticks have come.
func (s *Scheduler) mayDecide(ctx context.Context) error {
	if err := s.o.Clock.Check(ctx); err != nil {
		return fmt.Errorf("%w: schedules: %w", journal.ErrUnavailable, err)
	}
	return nil
}

// look is one look at all schedules.
type look struct {
	s *Scheduler
	window

	mu   sync.Mutex
	made Made
	errs []error
}

// together is how many schedules are worked on at once: their writes go together then.
const together = 32

func (l *look) run(ctx context.Context, plans map[string]*plan, known map[string]stored) {
	gate := make(chan struct{}, together)
	var group sync.WaitGroup
	for name, p := range plans {
		state, there := known[name]
		if !there {
			state = stored{state: stateOf(name, l.now)}
		}
		if there && l.idle(p, &state) {
			continue
		}
		gate <- struct{}{}
		group.Go(func() {
			defer func() { <-gate }()
			l.advance(ctx, p, state)
		})
	}
	group.Wait()
}

func stateOf(name string, now time.Time) state {
	return state{Name: name, Since: now.UnixMicro(), Until: now.UnixMicro()}
}

// idle reports whether nothing of a schedule falls due in this look, and notes when something does.
func (l *look) idle(p *plan, state *stored) bool {
	if state.Suspended {
		return true
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

// advance makes the ticks of one schedule and remembers it.
func (l *look) advance(ctx context.Context, p *plan, state stored) {
	made, err := l.s.advance(ctx, p, &state, l.window)
	if err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.errs = append(l.errs, fmt.Errorf("schedule %s: %w", p.Name, err))
		return
	}
	next, ok := p.next(&state.state)
	l.note(made, next, ok)
}

// advance makes the ticks first, each of which is made once by its id, and then remembers up to when: cut off between the
// two, the next look makes none twice.
func (s *Scheduler) advance(ctx context.Context, p *plan, state *stored, w window) (made int, err error) {
	d, firedAt := p.dueFrom(state, w)
	for i := 0; i < len(d.times); i += queue.MaxBatch {
		batch := d.times[i:min(i+queue.MaxBatch, len(d.times))]
		answer, err := s.make(ctx, p, batch)
		if err != nil {
			return made, err
		}
		for _, t := range answer.Tasks {
			if !t.Existing {
				made++
			}
		}
	}
	state.FiredAt = firedAt
	state.Until = w.until.UnixMicro()
	if d.more {
		state.Until = firedAt
	}
	return made, s.remember(ctx, state, p.told(d))
}

// dueFrom works out the ticks that are due, and what the newest of all is then. A handler's interval begins with the state
// that is remembered of it, so that every process means the same time.
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

// make enqueues ticks.
func (s *Scheduler) make(ctx context.Context, p *plan, times []time.Time) (queue.Enqueued, error) {
	news := make([]queue.New, len(times))
	for i, at := range times {
		news[i] = p.tick(at)
	}
	return s.o.Queue.Enqueue(ctx, nil, news...)
}

// remember writes a schedule's state with the events of what was decided. Race: of two looks at once, one writes; the other
// has made the same ticks, which are there already, and its state is refused.
func (s *Scheduler) remember(ctx context.Context, state *stored, events []event.Event) error {
	_, err := s.o.Journal.Write(ctx, func(_ context.Context, lost *store.Conflict) (journal.Change, error) {
		if lost != nil {
			return journal.Change{}, errBeaten
		}
		return journal.Change{Events: events, Ops: func(journal.Receipt) []store.Op { return []store.Op{state.op()} }}, nil
	})
	if errors.Is(err, errBeaten) {
		return nil
	}
	return err
}

// errBeaten ends a write whose work another look has done.
var errBeaten = errors.New("schedule: another look was quicker")
