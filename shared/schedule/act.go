package schedule

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// Status is a schedule and its present state.
type Status struct {
	definition.Schedule
	Suspended bool        // see [Scheduler.Suspend]
	Next      []time.Time // the next five times or fewer, in UTC; none while it is suspended
	FiredAt   time.Time   // the newest tick whose time has come, in UTC; zero: none
	Task      task.ID     // the task of that tick; empty: none, or an order
	Words     string      // the expression in English words
	Warnings  []string    // what in the expression is likely a mistake, see [Warnings]
}

// Names returns the names of all schedules that can be read, sorted. It reads nothing of each.
func (s *Scheduler) Names(ctx context.Context) ([]string, error) {
	a, err := s.compiled(ctx)
	return slices.Sorted(maps.Keys(a.plans)), err
}

// Entry is a schedule in the order of [Scheduler.Soonest].
type Entry struct {
	Name string
	Next time.Time // when it fires next, in UTC; zero: never again, or it is suspended
}

// Soonest returns all schedules that can be read, those first that fire first, then by their names.
func (s *Scheduler) Soonest(ctx context.Context) ([]Entry, error) {
	a, err := s.compiled(ctx)
	if err != nil {
		return nil, err
	}
	states, err := s.states(ctx)
	if err != nil {
		return nil, err
	}
	now, all := s.o.Now(), make([]Entry, 0, len(a.plans))
	for name, p := range a.plans {
		e, state := Entry{Name: name}, states[name].state
		if next, fires := p.after(state, now); fires && !state.Suspended {
			e.Next = next.UTC()
		}
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b Entry) int {
		if a.Next.IsZero() != b.Next.IsZero() {
			return cmp.Compare(b.Next.Unix(), a.Next.Unix()) // the zero time is before all others
		}
		return cmp.Or(a.Next.Compare(b.Next), strings.Compare(a.Name, b.Name))
	})
	return all, nil
}

// Get returns a schedule. The error is [ErrNoSchedule] if it is not declared, or cannot be read.
func (s *Scheduler) Get(ctx context.Context, name string) (Status, error) {
	p, err := s.plan(ctx, name)
	if err != nil {
		return Status{}, err
	}
	state, err := s.load(ctx, name)
	return s.status(p, state.state), err
}

// Some returns those of the named schedules that are declared and can be read, in the order of the names.
func (s *Scheduler) Some(ctx context.Context, names []string) ([]Status, error) {
	a, err := s.compiled(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]Status, 0, len(names))
	for some := range slices.Chunk(names, atOnce) {
		keys := make([]store.Key, len(some))
		for i, name := range some {
			keys[i] = key(name)
		}
		items, err := s.o.Store.Get(ctx, keys...)
		if err != nil {
			return nil, fmt.Errorf("%w: read schedules: %w", journal.ErrUnavailable, err)
		}
		for i, name := range some {
			p, state := a.plans[name], stored{state: stateOf(name, s.o.Now())}
			if items[i] != nil {
				if state, err = read(items[i]); err != nil {
					return nil, err
				}
			}
			if p != nil {
				all = append(all, s.status(p, state.state))
			}
		}
	}
	return all, nil
}

// atOnce is how many states are read in one call of the store.
const atOnce = 100

func (s *Scheduler) plan(ctx context.Context, name string) (*plan, error) {
	a, err := s.compiled(ctx)
	if err != nil {
		return nil, err
	}
	if p := a.plans[name]; p != nil {
		return p, nil
	}
	return nil, ErrNoSchedule
}

// upcoming is how many of the next times are shown.
const upcoming = 5

func (s *Scheduler) status(p *plan, state state) Status {
	st := Status{
		Schedule: p.Schedule, Suspended: state.Suspended, Words: p.words,
	}
	now := s.o.Now()
	st.Warnings = p.warnings(now)
	st.FiredAt = p.lastTick(state, now)
	if !st.FiredAt.IsZero() && p.Order == nil {
		tick := p.tick(st.FiredAt)
		st.Task = tick.ID()
	}
	for next, ok := p.after(state, now); ok && !state.Suspended && len(st.Next) < upcoming; next, ok = p.after(state, next) {
		st.Next = append(st.Next, next.UTC())
	}
	return st
}

// warnings returns what in the schedule is likely a mistake.
func (p *plan) warnings(now time.Time) []string {
	if p.interval > 0 {
		return nil
	}
	return p.table.Warnings(now)
}

// Warnings returns what in the schedules of a set is likely a mistake at the time now, such as one that never fires again. The
// texts begin with "schedule NAME: " and are sorted.
func Warnings(set *definition.Set, now time.Time) []string {
	all := []string{}
	for _, declared := range All(set) {
		p, err := compile(declared)
		if err != nil {
			continue // the set was refused for it before
		}
		for _, w := range p.warnings(now) {
			all = append(all, "schedule "+declared.Name+": "+w)
		}
	}
	slices.Sort(all)
	return all
}

// after returns the first tick after a time.
func (p *plan) after(state state, at time.Time) (time.Time, bool) {
	if p.interval == 0 {
		return p.table.Next(at)
	}
	next, ok := p.next(&state)
	for ; !next.After(at); next = next.Add(p.interval) {
	}
	return next, ok
}

// lastTick returns the newest tick whose time has come; zero: none has. Ticks are made ahead of their time.
func (p *plan) lastTick(state state, now time.Time) time.Time {
	last := at(state.FiredAt)
	for p.interval > 0 && last.After(now) {
		last = last.Add(-p.interval)
	}
	if last.After(now) {
		var ok bool
		if last, ok = p.table.Previous(now.Add(time.Nanosecond)); !ok {
			return time.Time{}
		}
	}
	if state.FiredAt == 0 || last.UnixMicro() < state.Since {
		return time.Time{}
	}
	return last.UTC()
}

// Suspend suspends a schedule if on is true, and withdraws the tasks of its ticks that are not due yet. Otherwise it resumes
// the schedule from now on; ticks that passed meanwhile get no tasks. Both are idempotent. The error is [ErrNoSchedule] if the
// schedule is not declared.
func (s *Scheduler) Suspend(ctx context.Context, name string, on bool) error {
	p, err := s.plan(ctx, name)
	if err != nil {
		return err
	}
	if err := s.mayDecide(ctx); err != nil {
		return err
	}
	kind := "ScheduleResumed"
	if on {
		kind = "ScheduleSuspended"
	}
	_, err = s.o.Journal.Write(ctx, func(ctx context.Context, _ *store.Conflict) (journal.Change, error) {
		state, err := s.load(ctx, name)
		if err != nil {
			return journal.Change{}, err
		}
		if state.Suspended == on && state.version != 0 {
			return journal.Change{}, errBeaten
		}
		state.Suspended = on
		if !on {
			state.Until = max(state.Until, s.o.Now().UnixMicro())
		}
		return journal.Change{
			Events: []event.Event{{Type: kind, Key: typed.ScheduleKey(name)}},
			Ops: func(r journal.Receipt) []store.Op {
				state.Cause = r.FirstID
				return []store.Op{state.op()}
			},
		}, nil
	})
	if err = ignoreBeaten(err); err != nil {
		return err
	}
	if !on {
		s.resumed.Store(true)
		return nil
	}
	state, err := s.load(ctx, name)
	if err != nil || !state.Suspended {
		return err
	}
	return s.suspended(journal.WithActor(ctx, ""), p, &state, s.o.Now())
}

// Trigger makes a task of a schedule now, and returns it; all calls with the same once, if it is not nil, make one. If the
// collection of a sync task has an unfinished task, it returns that. An order is started; its task's id is empty if its first step
// waits, and the error is [order.ErrState] if it does not start. It is [ErrNoSchedule] if the schedule is not declared.
func (s *Scheduler) Trigger(ctx context.Context, once *queue.Once, name string) (queue.Enqueued, error) {
	p, err := s.plan(ctx, name)
	if err != nil {
		return queue.Enqueued{}, err
	}
	if p.Order != nil {
		return s.triggerOrder(ctx, once, p)
	}
	n := p.tick(s.o.Now())
	n.Same, n.NotBefore, n.Late, n.Concurrency = "", time.Time{}, false, nil
	return s.o.Queue.Enqueue(ctx, once, n)
}

// MaxBackfill is how many ticks a backfill may make.
const MaxBackfill = 1000

// Backfilled is the result of [Scheduler.Backfill].
type Backfilled struct {
	Ticks    int  // how many of them are new
	Replayed bool // this is the result of an earlier call with the same idempotency key
}

// Backfill makes the ticks of a schedule from one time to another, both inclusive, at once. Ticks that were made before are not
// made again, and an order takes one only if none is under way. All calls with the same once, if it is not nil, have the result of the first; a schedule of orders keeps no keys. The
// error is [ErrRange] if there is no tick, if there are more than [MaxBackfill], if to lies in the future, or if the schedule
// counts from its last run.
func (s *Scheduler) Backfill(ctx context.Context, once *queue.Once, name string, from, to time.Time) (Backfilled, error) {
	p, err := s.plan(ctx, name)
	if err != nil {
		return Backfilled{}, err
	}
	times, err := s.past(p, from, to)
	if err != nil {
		return Backfilled{}, err
	}
	if p.Order != nil {
		made, err := s.start(ctx, p, times)
		return Backfilled{Ticks: made}, err
	}
	if p.Overlap == OverlapSkip { // all ticks were asked for: they run one after the other
		queued := *p
		queued.Overlap = OverlapQueue
		p = &queued
	}
	all := p.requests(0, times)
	for i := range all {
		all[i].Turns = all[i].Late
	}
	answer, err := s.o.Queue.Enqueue(ctx, once, all...)
	return Backfilled{fresh(answer), answer.Replayed}, err
}

// past returns the times of a plan from one time to another, as [Scheduler.Backfill] makes them.
func (s *Scheduler) past(p *plan, from, to time.Time) (times []time.Time, err error) {
	if to.Before(from) || to.After(s.o.Now()) {
		return nil, fmt.Errorf("%w: from %s to %s, want a range that ends after its beginning and not in the future", ErrRange,
			from.Format(time.RFC3339), to.Format(time.RFC3339))
	}
	if p.interval > 0 {
		return nil, fmt.Errorf("%w: %s counts from its last run and has no times in the past", ErrRange, p.Name)
	}
	for at, ok := p.table.Next(from.Add(-1)); ok && !at.After(to); at, ok = p.table.Next(at) {
		if times = append(times, at); len(times) > MaxBackfill {
			return nil, fmt.Errorf("%w: more than %d ticks from %s to %s; backfill less at a time", ErrRange, MaxBackfill,
				from.Format(time.RFC3339), to.Format(time.RFC3339))
		}
	}
	if len(times) == 0 {
		return nil, fmt.Errorf("%w: no tick from %s to %s", ErrRange, from.Format(time.RFC3339), to.Format(time.RFC3339))
	}
	return times, nil
}
