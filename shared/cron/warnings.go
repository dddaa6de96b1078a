package cron

import (
	"fmt"
	"math/bits"
	"time"
)

// Warnings returns what about the timetable is probably a mistake: that it never fires, or not again after now; that it
// fires every second, or every minute, of an hour; that day of month and day of week are alternatives. It is empty for
// most.
func (t Timetable) Warnings(now time.Time) []string {
	x := t.x
	if x.every > 0 {
		return nil
	}
	if !x.fires {
		return []string{fmt.Sprintf("it never fires: no day from %d to %d matches", firstYear, lastYear)}
	}
	if _, found := t.next(-shift); !found {
		return []string{"it never fires: the clock of the time zone skips all its times"}
	}
	if _, found := t.Next(now); !found {
		last, _ := t.Previous(now.Add(time.Second))
		return []string{"it never fires again: its last time was " + last.Format(time.RFC3339)}
	}
	var all []string
	if w := x.warnOften(); w != "" {
		all = append(all, w)
	}
	if x.days.byDate && x.days.byWeekday {
		all = append(all, "it fires on the days of the month and also on the days of the week: a day need match only one of the two fields")
	}
	return all
}

// warnOften returns a warning if a "*" stands where 0 was probably meant: in a smaller unit than one that is restricted.
func (x *Expression) warnOften() string {
	const every60 = 1<<60 - 1
	minutes, hours := bits.OnesCount64(x.minutes), bits.OnesCount64(x.hours)
	often := minutes * hours * 60
	switch {
	case x.seconds == every60 && x.minutes == every60 && hours < 24:
		return fmt.Sprintf("it fires every second of %s, %d times a day: for once a minute, let the seconds be 0", hoursInWords(hours), often)
	case x.seconds == every60 && minutes < 60:
		return fmt.Sprintf("it fires every second of a minute, %d times a day: for once in the minute, let the seconds be 0", often)
	case x.seconds&(x.seconds-1) == 0 && x.minutes == every60 && hours == 1:
		return "it fires every minute of an hour, 60 times a day: for once in the hour, let the minutes be 0"
	}
	return ""
}

func hoursInWords(n int) string {
	if n == 1 {
		return "an hour"
	}
	return fmt.Sprintf("%d hours", n)
}
