package cron

import (
	"math"
	"time"
)

// period is a time during which a zone's offset does not change.
type period struct {
	begin, end int64 // in Unix seconds; end is not part of it
	offset     int64 // of the zone's clock from UTC, in seconds
}

// The ends of time, beyond all changes of zones and far from overflow.
const (
	dawn int64 = math.MinInt64 / 4
	doom int64 = math.MaxInt64 / 4
)

// shift is more than any two offsets of a zone differ by: a clock is set by at most a day, and offsets lie between -16 h
// and +16 h.
const shift = 36 * hour

// periodAt returns the period that an instant lies in.
func (t Timetable) periodAt(instant int64) period {
	if t.zone == time.UTC {
		return period{dawn, doom, 0}
	}
	at := time.Unix(instant, 0).In(t.zone)
	_, offset := at.Zone()
	begin, end := at.ZoneBounds()
	p := period{dawn, doom, int64(offset)}
	if !begin.IsZero() {
		p.begin = begin.Unix()
	}
	if !end.IsZero() {
		p.end = end.Unix()
	}
	if p.end <= instant {
		// For years beyond a zone's table, package time splits periods at the ends of UTC years and counts 365 days for
		// each year. On the last day of a leap year that end is in the past.
		p.end = (instant/day + 1) * day
	}
	return p
}

// window is the range of local times that belong to a period: those from begin up to end fire in it, each at its instant,
// or at the period's beginning if the clock skipped it there.
type window struct{ begin, end moment }

// window returns the range of the period under the timetable's rule. Its limits are exact where near, a local time, may be
// near them.
//
// Where the clock jumps from a to b, the period before ends at the local time a, and the period after begins at b.
//
// Under the rule Cron the range after begins at a. If b is later, it includes the skipped times, which fire late; if b is
// earlier, it excludes the repeated times, which have fired. For expressions that recur it begins at b.
//
// Under the rule Quartz the range after begins at b, and the range before ends at b if that is earlier, so that repeated
// times belong to the period after.
func (t Timetable) window(p period, near moment) window {
	w := window{p.begin + p.offset, p.end + p.offset}
	switch {
	case t.saving == Quartz:
		if p.end < doom && w.end-near < shift {
			w.end = min(w.end, p.end+t.periodAt(p.end).offset)
		}
	case !t.x.recurs():
		if p.begin > dawn && near-w.begin < shift {
			w.begin = p.begin + t.periodAt(p.begin-1).offset
		}
	}
	return w
}

// recurs reports whether the expression fires in every hour of a day.
func (x *Expression) recurs() bool { return x.hours == 1<<24-1 }
