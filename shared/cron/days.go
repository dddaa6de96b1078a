package cron

// days says which days of a month match. Days of the month are bits 1 to 31, offsets from its end bits 0 to 30, days of
// the week bits 0 to 6 with Sunday as 0.
type days struct {
	byDate    bool // the fields by date apply
	byWeekday bool // the fields by weekday apply; if both do, a day must match one of them

	dates       uint32 // the nth day
	nearest     uint32 // nW: the weekday (Monday to Friday) nearest to the nth day, in the same month
	fromEnd     uint32 // L-n: the nth day before the last
	nearestFrom uint32 // L-nW: the weekday nearest to that day

	weekdays     uint8    // each such day of the month
	lastWeekdays uint8    // nL: the last such day of the month
	nthWeekdays  [5]uint8 // n#m: the mth such day of the month, at index m-1
}

// in returns the days of a month that match, as bits 1 to 31.
func (d *days) in(year, month int) uint32 {
	length := lengthOf(year, month)
	var found uint32
	if d.byDate {
		found = d.dates
		if d.fromEnd|d.nearest|d.nearestFrom != 0 {
			found |= d.specialDates(length, weekday(daysBefore(year, month)))
		}
	}
	if d.byWeekday {
		found |= d.onWeekdays(length, weekday(daysBefore(year, month)))
	}
	return found & span(1, length)
}

// span returns the bits from first to last.
func span(first, last int) uint32 { return uint32(below(last+1) &^ below(first)) }

// specialDates returns the days that L and W select in a month of that length that begins on that weekday.
func (d *days) specialDates(length, begins int) uint32 {
	var found uint32
	for rest := uint64(d.fromEnd); rest != 0; rest &= rest - 1 {
		if n := length - least(rest, 0); n >= 1 {
			found |= 1 << n
		}
	}
	for rest := uint64(d.nearest) & below(length+1); rest != 0; rest &= rest - 1 {
		found |= 1 << nearestWeekday(least(rest, 0), length, begins)
	}
	for rest := uint64(d.nearestFrom); rest != 0; rest &= rest - 1 {
		if n := length - least(rest, 0); n >= 1 {
			found |= 1 << nearestWeekday(n, length, begins)
		}
	}
	return found
}

// nearestWeekday returns the day from Monday to Friday that is nearest to the nth and in the same month.
func nearestWeekday(n, length, begins int) int {
	switch (begins + n - 1) % 7 {
	case 6: // Saturday
		if n == 1 {
			return 3
		}
		return n - 1
	case 0: // Sunday
		if n == length {
			return n - 2
		}
		return n + 1
	default:
		return n
	}
}

// onWeekdays returns the days that the day-of-week field selects.
func (d *days) onWeekdays(length, begins int) uint32 {
	found := repeat(d.weekdays, begins)
	if d.lastWeekdays != 0 {
		found |= repeat(d.lastWeekdays, begins) & span(length-6, length)
	}
	for i, weekdays := range d.nthWeekdays {
		if weekdays != 0 {
			found |= repeat(weekdays, begins) & span(7*i+1, min(7*i+7, 31))
		}
	}
	return found
}

// repeat returns all days that fall on weekdays, of a month that begins on that weekday.
func repeat(weekdays uint8, begins int) uint32 {
	week := uint64(weekdays)
	week = (week>>begins | week<<(7-begins)) & (1<<7 - 1) // bit 0 is now the month's first day
	return uint32(week * (1 | 1<<7 | 1<<14 | 1<<21 | 1<<28) << 1)
}
