package crontest

import (
	"strconv"
	"strings"
	"time"
)

// values describes the values that a field may have.
type values struct {
	min, max, step int
	names          string // of the values from min on, three letters each
}

var (
	secondValues = values{0, 59, 59, ""}
	minuteValues = values{0, 59, 59, ""}
	hourValues   = values{0, 23, 23, ""}
	dateValues   = values{1, 31, 31, ""}
	monthValues  = values{1, 12, 12, "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC"}
	sundayIs0    = values{0, 6, 7, weekdayNames}
	sundayIs1    = values{1, 7, 7, weekdayNames}
	yearValues   = values{1970, 2099, 40, ""}
)

const weekdayNames = "SUNMONTUEWEDTHUFRISAT"

func (v values) random(source Source) int {
	if v.min == 1970 { // most of them close to each other
		return 2000 + source(60)
	}
	return v.min + source(v.max-v.min+1)
}

// show returns a value as a number, sometimes with a zero before it, or by its name in some case.
func (v values) show(source Source, n int) string {
	if v.names == "" || source(2) == 0 {
		if n < 10 && source(8) == 0 {
			return "0" + strconv.Itoa(n)
		}
		return strconv.Itoa(n)
	}
	return inSomeCase(source, v.names[3*(n-v.min):3*(n-v.min)+3])
}

func inSomeCase(source Source, text string) string {
	switch source(3) {
	case 0:
		return strings.ToLower(text)
	case 1:
		return text[:1] + strings.ToLower(text[1:])
	default:
		return text
	}
}

// list makes one or several items.
func list(source Source, v values) (string, match) {
	text, found := item(source, v)
	for source(3) == 0 {
		more, also := item(source, v)
		first := found
		text, found = text+","+more, func(n int) bool { return first(n) || also(n) }
	}
	return text, found
}

// item makes a value, a range, or either with a step.
func item(source Source, v values) (string, match) {
	a, step := v.random(source), 1+source(v.step)
	suffix := "/" + strconv.Itoa(step)
	switch source(6) {
	case 0:
		return "*/" + strconv.Itoa(max(step, 2)), func(n int) bool { return (n-v.min)%max(step, 2) == 0 }
	case 1:
		a = min(a, v.max)
		return strconv.Itoa(a) + suffix, func(n int) bool { return n >= a && (n-a)%step == 0 }
	case 2:
		text, b := v.span(source, a)
		return text, func(n int) bool { return v.distance(a, n) <= v.distance(a, b) }
	case 3:
		text, b := v.span(source, a)
		return text + suffix, func(n int) bool { return v.distance(a, n) <= v.distance(a, b) && v.distance(a, n)%step == 0 }
	default:
		return v.show(source, a), func(n int) bool { return n == a }
	}
}

// span makes a range from a, which wraps where that is allowed, and returns its end too.
func (v values) span(source Source, a int) (string, int) {
	b := v.random(source)
	if v.min == 1970 {
		b = min(a+source(30), v.max)
	}
	return v.show(source, a) + "-" + v.show(source, b), b
}

// distance returns how far it is from a up to n, where the least value follows the greatest.
func (v values) distance(a, n int) int {
	count := v.max - v.min + 1
	return (n - a + count) % count
}

// dayList makes one or several items of a day field.
func dayList(source Source, item func(Source) (string, dayMatch)) (string, dayMatch) {
	text, found := item(source)
	for source(3) == 0 {
		more, also := item(source)
		first := found
		text, found = text+","+more, func(t time.Time) bool { return first(t) || also(t) }
	}
	return text, found
}

// dateItem makes a day of the month, by number or by L and W.
func dateItem(source Source) (string, dayMatch) {
	n, back := 1+source(31), source(31)
	text := "L"
	if back > 0 || source(2) == 0 {
		text += "-" + strconv.Itoa(back)
	}
	switch source(8) {
	case 0:
		return text, func(t time.Time) bool { return t.Day() == lastDay(t)-back }
	case 1:
		return text + "W", func(t time.Time) bool { return t.Day() == nearest(t, lastDay(t)-back) }
	case 2:
		return strconv.Itoa(n) + "W", func(t time.Time) bool { return t.Day() == nearest(t, n) }
	case 3:
		return "*", anyDay
	default:
		plain, found := item(source, dateValues)
		return plain, func(t time.Time) bool { return found(t.Day()) }
	}
}

// weekdayItem makes a day of the week, perhaps only the last or the mth of the month.
func weekdayItem(source Source) (string, dayMatch) {
	n, m := 1+source(7), 1+source(5)
	on := func(t time.Time) bool { return int(t.Weekday()) == n-1 }
	switch source(8) {
	case 0:
		return sundayIs1.show(source, n) + "L", func(t time.Time) bool { return on(t) && t.Day()+7 > lastDay(t) }
	case 1:
		return sundayIs1.show(source, n) + "#" + strconv.Itoa(m), func(t time.Time) bool { return on(t) && (t.Day()+6)/7 == m }
	case 2:
		return "L", func(t time.Time) bool { return t.Weekday() == time.Saturday }
	case 3:
		return "*", anyDay
	default:
		plain, found := item(source, sundayIs1)
		return plain, func(t time.Time) bool { return found(int(t.Weekday()) + 1) }
	}
}

// lastDay returns the last day of t's month.
func lastDay(t time.Time) int { return time.Date(t.Year(), t.Month()+1, 0, 0, 0, 0, 0, time.UTC).Day() }

// nearest returns the day from Monday to Friday of t's month that is nearest to the nth; 0 if there is no nth.
func nearest(t time.Time, n int) int {
	if n < 1 || n > lastDay(t) {
		return 0
	}
	best := 0
	for d := 1; d <= lastDay(t); d++ {
		switch time.Date(t.Year(), t.Month(), d, 0, 0, 0, 0, time.UTC).Weekday() {
		case time.Saturday, time.Sunday:
		default:
			if best == 0 || abs(d-n) < abs(best-n) {
				best = d
			}
		}
	}
	return best
}

func abs(n int) int { return max(n, -n) }
