package schedule

import (
	"slices"
	"sync"
	"time"
)

// What becomes of ticks that are late: whose time passed while nobody could make them.
const (
	MisfireSkip = "skip" // nothing
	MisfireOnce = "once" // one task, at once; the default
	MisfireAll  = "all"  // a task for each, at once, but for no more than MaxMisfires
)

// MaxMisfires is how many late ticks of a schedule are made up for at most, the newest.
const MaxMisfires = 1000

// How late a tick may be and still count as on time: one look, which is what it takes to find out that it is due.
const (
	lateAlone  = 3 * time.Second // in a process that has the store to itself
	lateShared = time.Minute     // where a function comes once a minute
)

// absence is for how long a process that looks all the time may not have got to it, for a slow disk say, and still have known of
// what fell due meanwhile: that is on time then. Who was away for longer was as good as down.
const absence = time.Minute

// window is what a look at the schedules covers.
type window struct {
	now    time.Time
	onTime time.Time // a tick that was due before is late
	until  time.Time // ticks up to then are made
}

// window returns what a look covers that makes ticks until then.
func (s *Scheduler) window(until time.Time) window {
	w := window{now: s.o.Now(), until: until}
	late := lateShared
	if s.o.Store.Exclusive() {
		late = lateAlone
	}
	w.onTime = w.now.Add(-late)
	if last := s.presence.last(); w.now.Sub(last) <= absence && last.Before(w.onTime) {
		w.onTime = last
	}
	return w
}

// presence is when this process last knew of every tick that was to come.
type presence struct {
	mu sync.Mutex
	at time.Time
}

func (p *presence) note(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at = now
}

func (p *presence) last() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at
}

// madeUp returns which of the late ticks get a task.
func (p *plan) madeUp(from, to time.Time) []time.Time {
	switch p.Misfire {
	case MisfireSkip:
		return nil
	case MisfireAll:
		var back []time.Time
		for at, ok := to, true; ok && !at.Before(from) && len(back) < MaxMisfires; at, ok = p.table.Previous(at) {
			back = append(back, at)
		}
		slices.Reverse(back)
		return back
	default:
		return []time.Time{to}
	}
}
