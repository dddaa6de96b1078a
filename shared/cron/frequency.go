package cron

import "math/bits"

// FiresPerDay returns how many times the expression fires on an average day of the years that it names, by the calendar
// alone: 1 for a daily one, 1/7 for a weekly one, 0 if it never fires.
func (x *Expression) FiresPerDay() float64 {
	if x.every > 0 {
		return float64(day) / x.every.Seconds()
	}
	matching, all := 0, 0
	for year := range years {
		if year == calendarCycle && x.years == everyYear() {
			break
		}
		if !x.years.has(year) {
			continue
		}
		for month := range 12 {
			all += lengthOf(year, month)
			if x.months>>month&1 != 0 {
				matching += bits.OnesCount32(x.days.in(year, month))
			}
		}
	}
	return float64(x.timesADay()*matching) / float64(all)
}

// timesADay returns how many times the expression fires on a day on which it does.
func (f *fields) timesADay() int {
	return bits.OnesCount64(f.seconds) * bits.OnesCount64(f.minutes) * bits.OnesCount64(f.hours)
}

// calendarCycle is the number of years after which dates fall on the same days of the week again.
const calendarCycle = 28
