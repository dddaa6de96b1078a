package cron

import "time"

// Shift is a change of a zone's clock that concerns a timetable: the clock skips or repeats local times for which the expression fires.
type Shift struct {
	At      time.Time   // when the clock changes, in the zone
	Local   time.Time   // the first local time that is concerned, with UTC as its zone
	Repeats bool        // the clock goes back and shows the time twice; otherwise it goes forward and never shows it
	Fires   []time.Time // when the timetable fires for that time, in the zone: never, once or twice
}

// Shifts returns the changes of the clock after one time and up to another that concern the timetable, in order.
func (t Timetable) Shifts(after, to time.Time) (all []Shift) {
	if t.x.every > 0 {
		return nil
	}
	last := clamp(to.Unix())
	for p := t.periodAt(clamp(after.Unix())); p.end <= last; {
		next := t.periodAt(p.end)
		if s, concerned := t.shiftBetween(p, next); concerned {
			all = append(all, s)
		}
		p = next
	}
	return all
}

// shiftBetween returns what the change from one period to the next does to the first local time that it concerns, if there is one.
func (t Timetable) shiftBetween(before, after period) (s Shift, concerned bool) {
	old, now := after.begin+before.offset, after.begin+after.offset // what the clock would show, and what it shows
	if before.end != after.begin || old == now {
		return s, false
	}
	m, found := t.x.next(min(old, now))
	if !found || m >= max(old, now) {
		return s, false
	}
	s = Shift{At: time.Unix(after.begin, 0).In(t.zone), Local: time.Unix(m, 0).UTC(), Repeats: now < old}
	instants := []int64{after.begin} // when a skipped time fires, if it does
	switch {
	case s.Repeats:
		instants = []int64{m - before.offset, m - after.offset}
	case t.saving == Quartz || t.x.recurs(): // what fires at the change is due then anyway
		instants = nil
	}
	for _, u := range instants {
		if at, fires := t.next(u); fires && at == u {
			s.Fires = append(s.Fires, time.Unix(u, 0).In(t.zone))
		}
	}
	return s, true
}
