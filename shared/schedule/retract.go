package schedule

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"time"

	"github.com/millrace/millrace/shared/clock"
	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// The tasks of ticks that were made ahead of their time are withdrawn when their schedule is suspended, removed or declared
// anew. If that is cut off, the next look does it, since the state says by which declaration they were made.

// spec is the part of a declaration that ticks are made by: enough to tell that it has changed, and to find the ids of the ticks.
type spec struct {
	Cron     string `json:"c,omitempty"`
	Date     int64  `json:"d,omitempty"` // microseconds since 1970
	Timezone string `json:"z,omitempty"`
	DST      string `json:"s,omitempty"`
	Job      string `json:"j"`
	Chain    string `json:"o,omitempty"` // of the order that it makes instead of a task
	ID       string `json:"i,omitempty"` // of that order
	Rest     string `json:"r"`           // a hash of the rest that their tasks have from it
}

func specOf(s *definition.Schedule) spec {
	rest := sha256.Sum256(slices.Concat([]byte(s.Overlap+"\x00"), s.Payload))
	of := spec{Cron: s.Cron, Timezone: s.Timezone, DST: s.DST, Job: s.Job, Rest: hex.EncodeToString(rest[:8])}
	if !s.Date.IsZero() {
		of.Date = s.Date.UnixMicro()
	}
	if s.Order != nil {
		of.Chain, of.ID = s.Order.Chain, s.Order.ID
	}
	return of
}

// plan returns a plan that has the same ticks; the error says why the declaration can no longer be read.
func (of *spec) plan(name string) (*plan, error) {
	s := definition.Schedule{Name: name, Cron: of.Cron, Timezone: of.Timezone, DST: of.DST, Job: of.Job}
	if of.Date != 0 {
		s.Date = at(of.Date)
	}
	if of.Chain != "" {
		s.Order = &definition.ScheduledOrder{Chain: of.Chain, ID: of.ID}
	}
	return compile(s)
}

// follows reports whether the schedule's ticks so far were made by this plan.
func (s *state) follows(p *plan) bool { return s.Of == nil || *s.Of == p.spec }

// ahead returns the ids of the ticks that were made and are later than now, and of those up to `to` that may have been.
func (p *plan) ahead(state *state, now, to time.Time) (ids []task.ID) {
	name := func(at time.Time) {
		tick := p.tick(at)
		ids = append(ids, tick.ID())
	}
	if p.interval > 0 {
		for last := at(state.FiredAt); last.After(now); last = last.Add(-p.interval) {
			name(last)
		}
		next, _ := p.next(state)
		for next = next.Add(max(0, now.Sub(next)).Truncate(p.interval)); !next.After(to); next = next.Add(p.interval) {
			if next.After(now) {
				name(next)
			}
		}
		return ids
	}
	until := at(state.Until)
	if until.Before(to) {
		until = to
	}
	for next, ok := p.table.Next(now); ok && !next.After(until); next, ok = p.table.Next(next) {
		name(next)
	}
	return ids
}

// retract withdraws the ticks of a schedule that were made ahead, and those up to `to` that may have been, and sets the state back to
// now, without writing it. Tasks that run or are due stay. The plan is the one in force, nil if there is none; the state's Cause is
// why.
func (s *Scheduler) retract(ctx context.Context, p *plan, state *stored, now, to time.Time) error {
	if state.Of != nil {
		if made, err := state.Of.plan(state.Name); err == nil {
			p = made
		}
	}
	if p != nil {
		if err := s.withdraw(ctx, p, now, state.Cause, p.ahead(&state.state, now, to)); err != nil {
			return err
		}
		if last := p.lastTick(state.state, now); last.IsZero() {
			state.FiredAt = 0
		} else {
			state.FiredAt = last.UnixMicro()
		}
	}
	state.Until = min(state.Until, now.UnixMicro())
	return nil
}

// unnoted is how far ahead of now there may be ticks that the state does not know of: a process makes them, and dies before it
// writes the state. Its clock and this one may differ.
const unnoted = Ahead + 2*clock.Tolerance

// suspended withdraws the ticks that were made ahead of a suspended schedule.
func (s *Scheduler) suspended(ctx context.Context, p *plan, state *stored, now time.Time) error {
	if err := s.retract(ctx, p, state, now, now.Add(unnoted)); err != nil {
		return err
	}
	return ignoreBeaten(s.remember(ctx, state, nil))
}

// retire withdraws the ticks that were made ahead of a schedule that is no longer declared, and deletes its state.
func (l *look) retire(ctx context.Context, state *stored) (err error) {
	job := ""
	if state.Of != nil {
		job = state.Of.Job
	}
	if state.Cause, err = l.declared.of(ctx, declarer(state.Name, job)); err != nil {
		return err
	}
	if err := l.s.retract(ctx, nil, state, l.now, l.now); err != nil {
		return err
	}
	_, err = l.s.o.Journal.Write(ctx, func(_ context.Context, lost *store.Conflict) (journal.Change, error) {
		if lost != nil {
			return journal.Change{}, errBeaten
		}
		return journal.Change{Ops: func(journal.Receipt) []store.Op {
			return []store.Op{store.Delete(key(state.Name), state.cond())}
		}}, nil
	})
	return ignoreBeaten(err)
}

// yield withdraws ticks if the schedule was suspended, removed or declared anew while they were made: another process has
// written the state meanwhile.
func (s *Scheduler) yield(ctx context.Context, p *plan, times []time.Time, now time.Time) error {
	state, err := s.load(ctx, p.Name)
	if err != nil || state.version != 0 && !state.Suspended && state.follows(p) {
		return err
	}
	var ids []task.ID
	for _, at := range times {
		if tick := p.tick(at); at.After(now) {
			ids = append(ids, tick.ID())
		}
	}
	return s.withdraw(ctx, p, now, state.Cause, ids)
}

func ignoreBeaten(err error) error {
	if errors.Is(err, errBeaten) {
		return nil
	}
	return err
}
