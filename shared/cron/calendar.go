package cron

// The years in which expressions fire. Every fourth of them is a leap year, 2000 too.
const (
	firstYear = 1970
	lastYear  = 2099
	years     = lastYear - firstYear + 1
)

// moment is a local time in seconds since 1970-01-01 00:00:00 of the same clock. Which instant it is, if any, depends on
// the time zone.
type moment = int64

const (
	minute = 60
	hour   = 60 * minute
	day    = 24 * hour

	// horizon is the moment after the last one that can be asked for.
	horizon moment = (years*365 + 32) * day
)

// date is a day of the calendar: the year since 1970, the month from 0, the day from 1.
type date struct{ year, month, day int }

// monthBegins is the day of a common year on which each month begins, from 0.
var monthBegins = [13]int{0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365}

// leap returns 1 if the year, counted from 1970, is a leap year, otherwise 0.
func leap(year int) int {
	if year%4 == 2 {
		return 1
	}
	return 0
}

// daysBefore returns the number of days from 1970-01-01 to the beginning of a month.
func daysBefore(year, month int) int {
	n := year*365 + (year+1)/4 + monthBegins[month] // + the leap years so far: 1972 is year 2
	if month > 1 {
		n += leap(year)
	}
	return n
}

// lengthOf returns the number of days of a month.
func lengthOf(year, month int) int {
	n := monthBegins[month+1] - monthBegins[month]
	if month == 1 {
		n += leap(year)
	}
	return n
}

// dateOf returns the date of day n counted from 1970-01-01; 0 ≤ n, before 2100.
func dateOf(n int) date {
	const cycle = 4*365 + 1
	// Counted from 1968-01-01, each cycle begins with its leap year.
	n += 2*365 + 1
	year, rest := n/cycle*4, n%cycle
	if rest >= 366 {
		year += (rest - 1) / 365
		rest = (rest - 1) % 365
	} else if rest >= 60 { // after the 29th of February: count as in a common year
		rest--
	} else if rest == 59 {
		return date{year - 2, 1, 29}
	}
	month := rest / 31 // this month or, late in it, the one before
	if rest >= monthBegins[month+1] {
		month++
	}
	return date{year - 2, month, rest - monthBegins[month] + 1}
}

// weekday returns the day of the week of day n counted from 1970-01-01; Sunday is 0.
func weekday(n int) int { return (n + 4) % 7 }
