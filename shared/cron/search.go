package cron

// fields is the parsed form of an expression with fields: the local times at which it fires.
type fields struct {
	seconds, minutes, hours uint64
	months                  uint64 // bit 0 is January
	years                   set    // since 1970
	days                    days
}

// next returns the first moment at or after m that matches, and whether there is one. It examines each month at most once,
// so at most 1,560.
func (f *fields) next(m moment) (moment, bool) {
	if m < 0 {
		m = 0
	}
	if m >= horizon {
		return 0, false
	}
	n, second := int(m/day), int(m%day)
	d := dateOf(n)
	if f.onDay(d) {
		if at := f.nextInDay(second); at >= 0 {
			return int64(n)*day + int64(at), true
		}
	}
	d, found := f.nextDay(d)
	if !found {
		return 0, false
	}
	return momentOf(d, f.nextInDay(0)), true
}

// previous returns the last moment at or before m that matches, and whether there is one; it is bounded as next is.
func (f *fields) previous(m moment) (moment, bool) {
	if m >= horizon {
		m = horizon - 1
	}
	if m < 0 {
		return 0, false
	}
	n, second := int(m/day), int(m%day)
	d := dateOf(n)
	if f.onDay(d) {
		if at := f.previousInDay(second); at >= 0 {
			return int64(n)*day + int64(at), true
		}
	}
	d, found := f.previousDay(d)
	if !found {
		return 0, false
	}
	return momentOf(d, f.previousInDay(day-1)), true
}

func momentOf(d date, second int) moment {
	return int64(daysBefore(d.year, d.month)+d.day-1)*day + int64(second)
}

// onDay reports whether the expression fires on that day.
func (f *fields) onDay(d date) bool {
	return f.years.has(d.year) && f.months>>d.month&1 != 0 && f.days.in(d.year, d.month)>>d.day&1 != 0
}

// nextDay returns the first day after d on which the expression fires.
func (f *fields) nextDay(d date) (date, bool) {
	for {
		if year := f.years.above(d.year); year < 0 {
			return date{}, false
		} else if year > d.year {
			d = date{year: year}
		}
		month := least(f.months, d.month)
		if month < 0 {
			if d = (date{year: d.year + 1}); d.year >= years {
				return date{}, false
			}
			continue
		}
		if month > d.month {
			d.month, d.day = month, 0
		}
		if found := least(uint64(f.days.in(d.year, d.month)), d.day+1); found >= 0 {
			return date{d.year, d.month, found}, true
		}
		d.month, d.day = d.month+1, 0
	}
}

// previousDay returns the last day before d on which the expression fires.
func (f *fields) previousDay(d date) (date, bool) {
	const all = 32 // greater than the last day of any month
	for {
		if year := f.years.beneath(d.year); year < 0 {
			return date{}, false
		} else if year < d.year {
			d = date{year, 11, all}
		}
		month := greatest(f.months, d.month)
		if month < 0 {
			if d = (date{d.year - 1, 11, all}); d.year < 0 {
				return date{}, false
			}
			continue
		}
		if month < d.month {
			d.month, d.day = month, all
		}
		if found := greatest(uint64(f.days.in(d.year, d.month)), d.day-1); found >= 0 {
			return date{d.year, d.month, found}, true
		}
		d.month, d.day = d.month-1, all
	}
}

// nextInDay returns the first second of a day, at or after second, at which the expression fires, or -1.
func (f *fields) nextInDay(second int) int {
	h, m, s := second/hour, second/minute%60, second%60
	if at := least(f.hours, h); at != h {
		return combine(at, least(f.minutes, 0), least(f.seconds, 0))
	}
	if at := least(f.minutes, m); at == m {
		if s = least(f.seconds, s); s >= 0 {
			return combine(h, m, s)
		}
		m++
	}
	if m = least(f.minutes, m); m >= 0 {
		return combine(h, m, least(f.seconds, 0))
	}
	return combine(least(f.hours, h+1), least(f.minutes, 0), least(f.seconds, 0))
}

// previousInDay returns the last second of a day, at or before second, at which the expression fires, or -1.
func (f *fields) previousInDay(second int) int {
	h, m, s := second/hour, second/minute%60, second%60
	if at := greatest(f.hours, h); at != h {
		return combine(at, greatest(f.minutes, 59), greatest(f.seconds, 59))
	}
	if at := greatest(f.minutes, m); at == m {
		if s = greatest(f.seconds, s); s >= 0 {
			return combine(h, m, s)
		}
		m--
	}
	if m = greatest(f.minutes, m); m >= 0 {
		return combine(h, m, greatest(f.seconds, 59))
	}
	return combine(greatest(f.hours, h-1), greatest(f.minutes, 59), greatest(f.seconds, 59))
}

// combine returns the second of the day, or -1 if there is no such hour.
func combine(h, m, s int) int {
	if h < 0 {
		return -1
	}
	return h*hour + m*minute + s
}
