package schedule

import (
	"fmt"
	"strings"
	"time"

	"github.com/millrace/millrace/shared/cron"
	"github.com/millrace/millrace/shared/definition"
)

// plan is a schedule whose expression was read.
type plan struct {
	definition.Schedule
	table    table
	words    string // a description
	spec     spec
	interval time.Duration // of a cron handler as in Dark, which fires so long after it fired last; it has no table
}

// table returns times that do not depend on earlier runs.
type table interface {
	Next(after time.Time) (time.Time, bool)
	Previous(before time.Time) (time.Time, bool)
	Warnings(now time.Time) []string
}

// date is the table of a schedule that fires once.
type date struct{ time.Time }

// Next returns the date if it is later.
func (d date) Next(after time.Time) (time.Time, bool) { return d.Time, d.After(after) }

// Previous returns the date if it is earlier.
func (d date) Previous(before time.Time) (time.Time, bool) { return d.Time, d.Before(before) }

// Warnings returns a text if the date has passed.
func (d date) Warnings(now time.Time) []string {
	if d.After(now) {
		return nil
	}
	return []string{"it never fires again: its only time was " + d.Format(time.RFC3339)}
}

// compile reads a schedule's expression. The error names what cannot be read.
func compile(s definition.Schedule) (*plan, error) {
	p, err := parse(s)
	if err == nil {
		p.spec = specOf(&s)
	}
	return p, err
}

func parse(s definition.Schedule) (*plan, error) {
	if !s.Date.IsZero() {
		return &plan{Schedule: s, table: date{s.Date}, words: "Once, at " + s.Date.Format(time.RFC3339)}, nil
	}
	if every, ok := definition.Intervals[s.Cron]; ok {
		return &plan{Schedule: s, interval: every, words: s.Cron + ", from when it ran last"}, nil
	}
	x, err := cron.Parse(s.Cron)
	if err != nil {
		return nil, fmt.Errorf("schedule %s: %w", s.Name, err)
	}
	zone, err := cron.Zone(s.Timezone)
	if err != nil {
		return nil, fmt.Errorf("schedule %s: %w", s.Name, err)
	}
	saving, err := cron.ParseSaving(s.DST)
	if err != nil {
		return nil, fmt.Errorf("schedule %s: %w", s.Name, err)
	}
	return &plan{Schedule: s, table: x.In(zone, saving), words: x.Describe()}, nil
}

// ticks are those of a schedule that are to be made now.
type ticks struct {
	times  []time.Time
	missed bool      // ticks were missed; those that get a task come first in times
	from   time.Time // the first that was missed, if any
	to     time.Time // the last that was missed
	more   bool      // there are others, which the next look makes
}

// next returns the first tick after those that were made.
func (p *plan) next(state *state) (time.Time, bool) {
	if p.interval == 0 {
		return p.table.Next(at(state.Until))
	}
	if state.FiredAt == 0 {
		return at(state.Since), true // it has never run: it is due
	}
	return at(state.FiredAt).Add(p.interval), true
}

// dueAgain returns the due ticks of a cron handler, and when the newest fired: each is an interval after the last, as in Dark. A
// late one counts from now, and ticks that were missed are not made.
func (p *plan) dueAgain(state *state, w window) (d ticks, firedAt int64) {
	s := *state
	for next, _ := p.next(&s); !next.After(w.until) && len(d.times) < maxTicks; next, _ = p.next(&s) {
		d.times = append(d.times, next)
		if s.FiredAt = next.UnixMicro(); next.Before(w.onTime) {
			s.FiredAt = w.now.UnixMicro()
		}
	}
	return d, s.FiredAt
}

// due returns the ticks after a time. Those before w.onTime were missed.
func (p *plan) due(after time.Time, w window) ticks {
	var d ticks
	if first, ok := p.table.Next(after); ok && first.Before(w.onTime) {
		d.from = first
		d.to, _ = p.table.Previous(w.onTime)
		d.missed = true
		d.times = p.madeUp(d.from, d.to)
		after = d.to
	}
	most := len(d.times) + maxTicks
	for at, ok := p.table.Next(after); ok && !at.After(w.until); at, ok = p.table.Next(at) {
		if len(d.times) == most {
			d.more = true
			break
		}
		d.times = append(d.times, at)
	}
	return d
}

// maxTicks is how many ticks that are on time one look makes of a schedule; the next look makes the rest.
const maxTicks = 200

// All returns every schedule of a set: those of its own section, those of the sources' collections, which are named
// sources/SOURCE/COLLECTION, and the handlers with an interval, which are named canvases/CANVAS/SPACE/NAME.
func All(set *definition.Set) []definition.Schedule {
	all := append([]definition.Schedule{}, set.Schedules...)
	for name, source := range set.Sources {
		for _, c := range source.Collections {
			if c.Schedule == "" {
				continue
			}
			path := definition.CollectionPath(name, c.Name)
			all = append(all, definition.Schedule{
				Name: strings.TrimPrefix(path, "/"), Cron: c.Schedule, Timezone: c.Timezone, DST: c.DST, Job: path,
			})
		}
	}
	for _, h := range set.Handlers {
		if h.Interval != "" {
			all = append(all, definition.Schedule{Name: strings.TrimPrefix(h.Path(), "/"), Cron: h.Interval, Job: h.Path()})
		}
	}
	return all
}
