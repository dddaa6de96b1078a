package main

import "time"

// How long before and after an outage of the server the times of a schedule may have been missed: they are made some seconds
// ahead, and a server that has started looks for them within a few.
const (
	outageBefore = time.Second
	outageAfter  = 6 * time.Second
	firstTick    = 10 * time.Second // after the server was ready for the first time
)

// reckonTicks checks that each time of each schedule has its task, once, from the beginning until the schedules were suspended.
// It returns how many there were.
func (l *ledger) reckonTicks(began, until time.Time, down spans) (ticks int) {
	for i, line := range lines {
		if line.policy == noTicks {
			continue
		}
		made, first := l.ticks[int8(i)], until.Unix()
		for second, n := range made {
			ticks += n
			first = min(first, second)
			if n != 1 {
				l.wrong("%s: the time %s has %d tasks", line.path, clock(second), n)
			}
		}
		if first > began.Add(firstTick).Unix() {
			l.wrong("%s: the first task is of %s, and the server was ready at %s", line.path, clock(first), began.Format(time.TimeOnly))
		}
		for second := first; second < until.Unix()-1; second++ {
			if made[second] == 0 && !line.policy.excuses(second, down) {
				l.wrong("%s: the time %s has no task", line.path, clock(second))
			}
		}
	}
	return ticks
}

// excuses reports whether a schedule need not have a task for a second.
func (p policy) excuses(second int64, down spans) bool {
	at := time.Unix(second, 0)
	switch p {
	case everyOne:
		return false
	case whileUp:
		return down.meets(at.Add(-outageAfter).UnixMicro(), at.Add(outageBefore).UnixMicro())
	default:
		return true
	}
}

func clock(second int64) string { return time.Unix(second, 0).UTC().Format(time.TimeOnly) }
