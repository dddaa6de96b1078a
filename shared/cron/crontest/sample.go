package crontest

import (
	"strconv"
	"strings"
	"time"
)

// Source returns a random number from 0 to n-1.
type Source func(n int) int

// Sample is a random expression with predicates of its meaning.
type Sample struct {
	Text string // the expression

	second, minute, hour, month, year match
	date, weekday                     dayMatch
	eitherDay                         bool // a match of one of the two day fields is enough
}

type (
	match    func(value int) bool
	dayMatch func(t time.Time) bool
)

// Match reports whether the expression fires when a clock shows the date and time of t.
func (s *Sample) Match(t time.Time) bool {
	return s.MatchClock(t.Clock()) && s.MatchDay(t)
}

// MatchClock reports whether it fires at that time of the days on which it fires.
func (s *Sample) MatchClock(hour, minute, second int) bool {
	return s.hour(hour) && s.minute(minute) && s.second(second)
}

// MatchDay reports whether it fires on t's day.
func (s *Sample) MatchDay(t time.Time) bool {
	if !s.year(t.Year()) || !s.month(int(t.Month())) {
		return false
	}
	if s.eitherDay {
		return s.date(t) || s.weekday(t)
	}
	return s.date(t) && s.weekday(t)
}

// Quartz returns a random expression of six or seven fields.
func Quartz(source Source) *Sample {
	s := &Sample{month: anything, year: fires, date: anyDay, weekday: anyDay}
	seconds, minutes, hours := s.clock(source)
	dates, months, weekdays, years := "?", "*", "?", ""
	if source(3) == 0 {
		months, s.month = list(source, monthValues)
	}
	if source(2) == 0 {
		dates, s.date = dayList(source, dateItem)
	} else {
		weekdays, s.weekday = dayList(source, weekdayItem)
	}
	if source(3) == 0 {
		years, s.year = list(source, yearValues)
	}
	s.Text = strings.TrimSpace(strings.Join([]string{seconds, minutes, hours, dates, months, weekdays, years}, " "))
	return s
}

// Classic returns a random expression of five fields.
func Classic(source Source) *Sample {
	s := &Sample{month: anything, year: fires, date: anyDay, weekday: anyDay}
	_, minutes, hours := s.clock(source)
	s.second = func(v int) bool { return v == 0 }
	dates, months, weekdays := "*", "*", "*"
	if source(3) == 0 {
		months, s.month = list(source, monthValues)
	}
	byDate, byWeekday := source(2) == 0, source(2) == 0
	if byDate {
		text, m := list(source, dateValues)
		dates, s.date = text, func(t time.Time) bool { return m(t.Day()) }
	}
	if byWeekday {
		text, m := list(source, sundayIs0)
		weekdays, s.weekday = text, func(t time.Time) bool { return m(int(t.Weekday())) }
	}
	s.eitherDay = byDate && byWeekday
	s.Text = strings.Join([]string{minutes, hours, dates, months, weekdays}, " ")
	return s
}

// clock makes the fields of the time of day. Single values are likelier than by chance, as in real expressions.
func (s *Sample) clock(source Source) (seconds, minutes, hours string) {
	seconds, s.second = few(source, secondValues)
	minutes, s.minute = few(source, minuteValues)
	hours, s.hour = few(source, hourValues)
	return seconds, minutes, hours
}

func few(source Source, v values) (string, match) {
	switch source(4) {
	case 0:
		return "*", anything
	case 1:
		return list(source, v)
	default:
		n := v.random(source)
		return v.show(source, n), func(value int) bool { return value == n }
	}
}

func anything(int) bool     { return true }
func anyDay(time.Time) bool { return true }
func fires(year int) bool   { return 1970 <= year && year <= 2099 }

// Near returns a random expression of which some times are likely to be near the date and time of t: its hours may begin
// near it, and its days are all days or one near it.
func Near(source Source, t time.Time) *Sample {
	s := &Sample{month: anything, year: fires, date: anyDay, weekday: anyDay}
	seconds, minutes, hours := s.clock(source)
	if source(2) == 0 {
		h := (t.Hour() + 22 + source(5)) % 24
		step := 1 + source(3)
		hours = strconv.Itoa(h) + "/" + strconv.Itoa(step)
		s.hour = func(v int) bool { return v >= h && (v-h)%step == 0 }
	}
	dates := "*"
	if source(2) == 0 {
		d := t.AddDate(0, 0, source(3)-1).Day()
		dates, s.date = strconv.Itoa(d), func(t time.Time) bool { return t.Day() == d }
	}
	s.Text = strings.Join([]string{seconds, minutes, hours, dates, "*", "?"}, " ")
	return s
}
