package cron

// days says which days of a month match. Days of the month are bits 1 to 31, offsets from its end bits 0 to 30, days
// of the week bits 0 to 6 with Sunday as 0.
type days struct {
	byDate    bool // the fields by date count
	byWeekday bool // the fields by weekday count; with both, a day need match one

	dates       uint32 // the nth
	nearest     uint32 // nW: the weekday nearest to the nth, in the same month
	fromEnd     uint32 // L-n
	nearestFrom uint32 // L-nW

	weekdays     uint8    // each of them
	lastWeekdays uint8    // nL: the last of them in the month
	nthWeekdays  [5]uint8 // n#m: the mth of them in the month, at m-1
}

// in answers the days of a month that match, as bits 1 to 31.
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

// span is the bits from first to last.
func span(first, last int) uint32 { return uint32(below(last+1) &^ below(first)) }

// specialDates answers the days that L and W mean in a month of that length, which begins on that weekday.
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

// nearestWeekday answers the day from Monday to Friday that is nearest to the nth and in the same month.
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

// onWeekdays answers the days that the day-of-week field means.
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

// repeat answers all days of a month, beginning on that weekday, that fall on weekdays.
func repeat(weekdays uint8, begins int) uint32 {
	week := uint64(weekdays)
	week = (week>>begins | week<<(7-begins)) & (1<<7 - 1) // now bit 0 is the month's first day
	return uint32(week * (1 | 1<<7 | 1<<14 | 1<<21 | 1<<28) << 1)
}
