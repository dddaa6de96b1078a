package cron

import (
	"iter"
	"time"
)

// Timetable is an expression in a time zone: the instants at which it fires. It is a small value, immutable and safe
// for concurrent use; make one with [Expression.In].
type Timetable struct {
	x      *Expression
	zone   *time.Location
	saving Saving
}

// In returns the expression's timetable in a zone; nil is UTC.
func (x *Expression) In(zone *time.Location, saving Saving) Timetable {
	if zone == nil {
		zone = time.UTC
	}
	return Timetable{x, zone, saving}
}

// Next returns the first time after the given one, in the timetable's zone, and false if there is none up to the end of
// 2099. It allocates nothing.
func (t Timetable) Next(after time.Time) (time.Time, bool) {
	return t.at(t.next(clamp(after.Unix()) + 1))
}

// Previous returns the last time before the given one, in the timetable's zone, and false if there is none since 1970. It
// allocates nothing.
func (t Timetable) Previous(before time.Time) (time.Time, bool) {
	last := clamp(before.Unix())
	if before.Nanosecond() == 0 {
		last--
	}
	return t.at(t.previous(last))
}

// Between returns an iterator over the times from one time to another, both included, in order.
func (t Timetable) Between(from, to time.Time) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		at, found := t.Next(from.Add(-1))
		for found && !at.After(to) && yield(at) {
			at, found = t.Next(at)
		}
	}
}

// clamp limits an instant to the range in which anything may fire in any zone, so that no sum overflows.
func clamp(u int64) int64 { return min(max(u, -shift), horizon+shift) }

func (t Timetable) at(instant int64, found bool) (time.Time, bool) {
	if !found {
		return time.Time{}, false
	}
	return time.Unix(instant, 0).In(t.zone), true
}

// next returns the first instant at or after u at which the timetable fires.
func (t Timetable) next(u int64) (int64, bool) {
	if t.x.every > 0 {
		return t.x.nextMultiple(u)
	}
	for t.x.fires && u <= t.x.last+shift {
		p := t.periodAt(u)
		w := t.window(p, u+p.offset)
		from := max(u+p.offset, w.begin)
		if u == p.begin {
			from = w.begin // the skipped times fire now
		}
		m, found := t.x.next(from)
		if !found {
			m = horizon
		}
		if found && m < t.window(p, m).end {
			return max(m-p.offset, p.begin), true
		}
		u = skipAhead(p, u, m)
	}
	return 0, false
}

// skipAhead returns where the search continues if no local time fires in the rest of p, and none before m. Just after p
// times may be repeated; later, until m-shift, no clock shows m or a later time.
func skipAhead(p period, u int64, m moment) int64 {
	if p.end-u < shift {
		return p.end
	}
	return max(p.end, m-shift)
}

// previous returns the last instant at or before u at which the timetable fires.
func (t Timetable) previous(u int64) (int64, bool) {
	if t.x.every > 0 {
		return t.x.previousMultiple(u)
	}
	for t.x.fires && u >= t.x.first-shift {
		p := t.periodAt(u)
		w := t.window(p, u+p.offset)
		m, found := t.x.previous(min(u+p.offset, w.end-1))
		if !found {
			m = -1
		}
		if found && m >= t.window(p, m).begin {
			return max(m-p.offset, p.begin), true
		}
		u = skipBack(p, u, m)
	}
	return 0, false
}

// skipBack is skipAhead in the other direction.
func skipBack(p period, u int64, m moment) int64 {
	if u-p.begin < shift {
		return p.begin - 1
	}
	return min(p.begin-1, m+shift)
}

// nextMultiple returns the first multiple of the length of "@every" that is at least u.
func (x *Expression) nextMultiple(u int64) (int64, bool) {
	every := int64(x.every / time.Second)
	n := (max(u, 0) + every - 1) / every * every
	return n, n < horizon
}

// previousMultiple returns the last multiple of the length of "@every" that is at most u.
func (x *Expression) previousMultiple(u int64) (int64, bool) {
	every := int64(x.every / time.Second)
	return min(u, horizon-1) / every * every, u >= 0
}
