package schedule

import (
	"fmt"
	"strings"
	"time"

	"github.com/millrace/millrace/shared/cron"
	"github.com/millrace/millrace/shared/definition"
)

// What becomes of ticks whose time has passed while nobody could make them.
const (
	MisfireSkip = "skip" // nothing
	MisfireOnce = "once" // one task, at once; the default
	MisfireAll  = "all"  // a task for each, at once, but for no more than MaxMisfires
)

// MaxMisfires is how many missed ticks of a schedule are made up for at most, the newest.
const MaxMisfires = 100

// Late is how long a tick may be overdue and still count as on time.
const Late = 2 * time.Minute

// plan is a schedule that can be worked with.
type plan struct {
	definition.Schedule
	table cron.Timetable
	words string // the expression's description
}

// compile reads a schedule. The error names what cannot be read.
func compile(s definition.Schedule) (*plan, error) {
	x, err := cron.Parse(s.Cron)
	if err != nil {
		return nil, fmt.Errorf("schedule %s: %w", s.Name, err)
	}
	zone := time.UTC
	if s.Timezone != "" {
		if zone, err = time.LoadLocation(s.Timezone); err != nil {
			return nil, fmt.Errorf("schedule %s: %w", s.Name, err)
		}
	}
	saving, err := cron.ParseSaving(s.DST)
	if err != nil {
		return nil, fmt.Errorf("schedule %s: %w", s.Name, err)
	}
	return &plan{Schedule: s, table: x.In(zone, saving), words: x.Describe()}, nil
}

// ticks are those that are to be made of a schedule now.
type ticks struct {
	times  []time.Time
	missed bool      // the first of them, or none, stands for ticks that were missed
	from   time.Time // the first that was missed, if any
	to     time.Time // the last that was missed
}

// due works out the ticks after one time up to another. Those that are later than Late by now were missed.
func (p *plan) due(after, now, until time.Time) ticks {
	var d ticks
	limit := now.Add(-Late)
	if first, ok := p.table.Next(after); ok && first.Before(limit) {
		d.from = first
		d.to, _ = p.table.Previous(limit)
		d.missed = true
		d.times = p.madeUp(d.from, d.to)
		after = d.to
	}
	for at, ok := p.table.Next(after); ok && !at.After(until) && len(d.times) < maxTicks; at, ok = p.table.Next(at) {
		d.times = append(d.times, at)
	}
	return d
}

// maxTicks bounds what is made at once; the rest follows with the next look.
const maxTicks = 200

// madeUp answers which of the missed ticks get a task.
func (p *plan) madeUp(from, to time.Time) []time.Time {
	switch p.Misfire {
	case MisfireSkip:
		return nil
	case MisfireAll:
		var back []time.Time
		for at, ok := to, true; ok && !at.Before(from) && len(back) < MaxMisfires; at, ok = p.table.Previous(at) {
			back = append([]time.Time{at}, back...)
		}
		return back
	default:
		return []time.Time{to}
	}
}

// All answers every schedule of a set: those of its own section, and those of the sources' collections, which are named
// sources/SOURCE/COLLECTION.
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
	return all
}
