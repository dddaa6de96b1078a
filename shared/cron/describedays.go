package cron

import (
	"fmt"
	"math/bits"
	"time"
)

// daysInWords returns the days, with a space before them; empty if the time of day implies them.
func (x *Expression) daysInWords() string {
	everyMonth := x.months == 1<<12-1
	month := "the month"
	if !everyMonth {
		month = and(runs(set{x.months}, func(n int) string { return time.Month(n + 1).String() }))
	}
	text, saidMonth := x.days.inWords(month)
	if text == "" && (units24(x.hours).isList() || x.timesADay() <= mostListed) {
		text = " every day"
	}
	if !everyMonth && !saidMonth {
		text += " in " + month
	}
	if x.years != everyYear() {
		text += " in " + and(runs(x.years, func(n int) string { return fmt.Sprint(n + firstYear) }))
	}
	return text
}

// inWords returns the days of a month, and whether the text names the month; an empty text means every day.
func (d *days) inWords(month string) (string, bool) {
	byDate, byWeekday := d.byDate && d.dates != allDates, d.byWeekday && d.weekdays != allWeekdays
	dates, weekdays := d.datesInWords()+" of "+month, and(d.weekdaysInWords())
	special := d.nthWeekdays != [5]uint8{} || d.lastWeekdays != 0
	if special {
		weekdays += " of " + month
	}
	switch {
	case d.byDate && d.byWeekday: // one of the two is enough
		return " on " + dates + " or on " + weekdays, true
	case byDate:
		return " on " + dates, true
	case byWeekday:
		return " on " + weekdays, special
	default:
		return "", false
	}
}

const (
	allDates    = 1<<32 - 2 // bits 1 to 31
	allWeekdays = 1<<7 - 1
)

// datesInWords returns the days of the month: by number, from the end, and nearest to either.
func (d *days) datesInWords() string {
	texts := runs(set{uint64(d.dates)}, func(n int) string { return "the " + ordinal(n) })
	each(d.nearest, func(n int) { texts = append(texts, "the weekday nearest to the "+ordinal(n)) })
	each(d.fromEnd, func(n int) { texts = append(texts, beforeLast(n)) })
	each(d.nearestFrom, func(n int) {
		if n == 0 {
			texts = append(texts, "the last weekday")
			return
		}
		texts = append(texts, "the weekday nearest to "+beforeLast(n))
	})
	return and(texts)
}

func each(word uint32, do func(n int)) {
	for ; word != 0; word &= word - 1 {
		do(bits.TrailingZeros32(word))
	}
}

func beforeLast(n int) string {
	switch n {
	case 0:
		return "the last day"
	case 1:
		return "the day before the last"
	default:
		return fmt.Sprintf("the %s day before the last", ordinal(n))
	}
}

// weekdaysInWords returns the days of the week, Monday first.
func (d *days) weekdaysInWords() []string {
	fromMonday := d.weekdays>>1 | d.weekdays&1<<6
	texts := runs(set{uint64(fromMonday)}, func(n int) string { return time.Weekday((n + 1) % 7).String() })
	for i, weekdays := range d.nthWeekdays {
		each(uint32(weekdays), func(n int) { texts = append(texts, "the "+ordinal(i+1)+" "+time.Weekday(n).String()) })
	}
	each(uint32(d.lastWeekdays), func(n int) { texts = append(texts, "the last "+time.Weekday(n).String()) })
	return texts
}
