package cron

import (
	"math"
	"time"
)

// period is a time during which a zone's clock is not changed.
type period struct {
	begin, end int64 // in Unix seconds, the end not in it
	offset     int64 // of the clock from UTC
}

// The ends of time, far from what any zone's rules change and from overflow.
const (
	dawn int64 = math.MinInt64 / 4
	doom int64 = math.MaxInt64 / 4
)

// shift is more than any two offsets of a zone differ by: clocks are set by no more than a day, and offsets lie between
// -16 h and +16 h.
const shift = 36 * hour

// periodAt answers the period of an instant.
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
		// For years beyond a zone's table, package time splits periods where a year of UTC ends, and takes every year to have
		// 365 days. On the last day of a leap year that end is past.
		p.end = (instant/day + 1) * day
	}
	return p
}

// window is the local times for which a period is responsible: those from begin up to end fire in it, each at its
// instant, or at the period's beginning if the clock skipped it there.
type window struct{ begin, end moment }

// window answers what the period is responsible for under the timetable's rule; near is a local time that may be near
// the window's limits.
//
// Where the clock jumps from a to b, the period before ends at the local time a, the one after begins at b. By the rule
// Cron the one after is responsible from a on, whether b is later (the skipped times are its, and late) or earlier (the
// repeated times have been). By the rule Quartz, and for what recurs, it is responsible from b on; by the rule Quartz the
// one before only up to b, so that repeated times are left to the one after.
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
