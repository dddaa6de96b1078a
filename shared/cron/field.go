package cron

// field describes one kind of field: its name in messages, its values, and the names of the values.
type field struct {
	name     string
	min, max int
	names    string // of the values from origin on, three letters each; empty: none
	origin   int
	wraps    bool // ranges may continue from the greatest value to the least
	maxStep  int
}

// The kinds of fields. The two languages number the days of the week differently.
var (
	secondField  = field{name: "seconds", max: 59, wraps: true, maxStep: 59}
	minuteField  = field{name: "minutes", max: 59, wraps: true, maxStep: 59}
	hourField    = field{name: "hours", max: 23, wraps: true, maxStep: 23}
	dateField    = field{name: "days of the month", min: 1, max: 31, wraps: true, maxStep: 31}
	monthField   = field{name: "months", min: 1, max: 12, names: "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC", origin: 1, wraps: true, maxStep: 12}
	weekdayField = field{name: "days of the week", min: 1, max: 7, names: weekdayNames, origin: 1, wraps: true, maxStep: 7}
	yearField    = field{name: "years", min: firstYear, max: lastYear, maxStep: years}

	classicWeekdayField = field{name: "days of the week", max: 6, names: weekdayNames, wraps: true, maxStep: 7}
)

const weekdayNames = "SUNMONTUEWEDTHUFRISAT"

// highest returns the greatest number that may be written: in classic expressions Sunday is 0 or 7.
func (f *field) highest() int {
	if f == &classicWeekdayField {
		return 7
	}
	return f.max
}

// fill adds every step-th value from first to last, as its distance from min. It wraps if last is below first.
func (f *field) fill(into *set, first, last, step int) {
	count := f.max - f.min + 1
	if last < first {
		last += count
	}
	for v := first - f.min; v <= last-f.min; v += step {
		into.add(v % count)
	}
}
