package cron

import (
	"fmt"
	"math/bits"
	"strings"
	"time"
)

// Describe returns in English when the expression fires, such as "At 12:00 on Monday to Friday".
func (x *Expression) Describe() string {
	text := ""
	if x.every > 0 {
		text = "every " + lengthInWords(x.every)
	} else {
		text = x.timeInWords() + x.daysInWords()
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// mostListed is how many times of day are listed one by one.
const mostListed = 6

// timeInWords returns the times of a day.
func (x *Expression) timeInWords() string {
	hours, minutes, seconds := units24(x.hours), units60(x.minutes, "minute"), units60(x.seconds, "second")
	if x.timesADay() <= mostListed {
		return "at " + and(x.timesOfDay())
	}
	switch {
	case !seconds.isZero():
		text := seconds.head()
		if !minutes.all() || seconds.isList() {
			text += " of " + minutes.part()
		}
		if !hours.all() || !minutes.all() {
			text += " of " + hours.part()
		}
		return text
	case !minutes.isZero():
		text := minutes.head()
		if !hours.all() || minutes.isList() {
			text += " of " + hours.part()
		}
		return text
	default:
		return hours.head()
	}
}

// timesOfDay returns all times of a day, with seconds if any of them is not 0.
func (x *Expression) timesOfDay() (times []string) {
	for at := x.nextInDay(0); at >= 0; at = x.nextInDay(at + 1) {
		text := fmt.Sprintf("%02d:%02d", at/hour, at/minute%60)
		if x.seconds != 1 {
			text += fmt.Sprintf(":%02d", at%60)
		}
		if times = append(times, text); at+1 == day {
			break
		}
	}
	return times
}

// unitSet is the seconds, minutes or hours that match.
type unitSet struct {
	values uint64
	count  int    // of the unit's values: 24 or 60
	name   string // of the unit: hour, minute or second
	start  int    // the first value
	step   int    // the distance of values if they are evenly spaced over the whole range, otherwise 0
}

func units24(values uint64) unitSet              { return unitsOf(values, 24, "hour") }
func units60(values uint64, name string) unitSet { return unitsOf(values, 60, name) }

func unitsOf(values uint64, count int, name string) unitSet {
	u := unitSet{values: values, count: count, name: name, start: least(values, 0)}
	if bits.OnesCount64(values) < 3 {
		return u
	}
	step := least(values, u.start+1) - u.start
	want := uint64(0)
	for v := u.start; v < count; v += step {
		want |= 1 << v
	}
	if want == values && u.start < step {
		u.step = step
	}
	return u
}

func (u unitSet) all() bool    { return u.step == 1 }
func (u unitSet) isZero() bool { return u.values == 1 }
func (u unitSet) isList() bool { return u.step == 0 }

// head returns the beginning of a description: "every 5 minutes", "at minute 30".
func (u unitSet) head() string {
	switch {
	case u.all():
		return "every " + u.name
	case u.step == 0:
		return "at " + u.list()
	case u.start == 0 && u.count%u.step == 0:
		return fmt.Sprintf("every %d %ss", u.step, u.name)
	default:
		return fmt.Sprintf("every %d %ss from %s %d on", u.step, u.name, u.name, u.start)
	}
}

// part returns the larger units that something is part of: "every hour", "hours 9 to 17", "every 2nd hour".
func (u unitSet) part() string {
	switch {
	case u.all():
		return "every " + u.name
	case u.step == 0:
		return u.list()
	case u.start == 0:
		return fmt.Sprintf("every %s %s", ordinal(u.step), u.name)
	default:
		return fmt.Sprintf("every %s %s from %d on", ordinal(u.step), u.name, u.start)
	}
}

func (u unitSet) list() string {
	if u.values&(u.values-1) == 0 {
		return fmt.Sprintf("%s %d", u.name, u.start)
	}
	return u.name + "s " + and(runs(set{u.values}, func(n int) string { return fmt.Sprint(n) }))
}

// runs returns the members of a set in words, three or more in a row as "a to b".
func runs(s set, name func(int) string) (texts []string) {
	for first := s.above(0); first >= 0; {
		last := first
		for last+1 < 64*len(s) && s.has(last+1) {
			last++
		}
		switch last - first {
		case 0:
			texts = append(texts, name(first))
		case 1:
			texts = append(texts, name(first), name(last))
		default:
			texts = append(texts, name(first)+" to "+name(last))
		}
		first = s.above(last + 1)
	}
	return texts
}

// and joins texts as a list in a sentence.
func and(texts []string) string {
	if len(texts) < 2 {
		return strings.Join(texts, "")
	}
	last := len(texts) - 1
	return strings.Join(texts[:last], ", ") + " and " + texts[last]
}

// ordinal returns "1st", "2nd" and so on.
func ordinal(n int) string {
	suffix := "th"
	if n/10%10 != 1 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return fmt.Sprint(n, suffix)
}

// lengthInWords returns "hour", "90 minutes" or "1 day 12 hours".
func lengthInWords(length time.Duration) string {
	var parts []string
	rest := int64(length / time.Second)
	for i, name := range []string{"day", "hour", "minute", "second"} {
		n := rest / units[i].length
		rest %= units[i].length
		switch {
		case n == 1 && rest == 0 && parts == nil:
			return name
		case n == 1:
			parts = append(parts, "1 "+name)
		case n > 1:
			parts = append(parts, fmt.Sprintf("%d %ss", n, name))
		}
	}
	return strings.Join(parts, " ")
}
