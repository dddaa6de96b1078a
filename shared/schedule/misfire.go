package schedule

import (
	"slices"
	"sync"
	"time"
)

// The misfire policies: which ticks get a task whose time passed while no process could make them.
const (
	MisfireSkip = "skip" // none
	MisfireOnce = "once" // the newest, at once; the default
	MisfireAll  = "all"  // the newest MaxMisfires, at once
)

// MaxMisfires is how many late ticks of a schedule get a task at most under [MisfireAll]: the newest.
const MaxMisfires = 1000

// How late a tick may be and still count as on time: as long as a look takes to find it due.
const (
	lateAlone  = 3 * time.Second // in a process that has the store to itself
	lateShared = time.Minute     // where a function looks once a minute
)

// absence is how long a process that looks all the time may be delayed, by a slow disk say, and still make what fell due
// meanwhile as on time. One that was delayed for longer counts as down.
const absence = time.Minute

// window is the time that a look at the schedules covers.
type window struct {
	now    time.Time
	onTime time.Time // a tick before this is late
	until  time.Time // ticks up to then are made
}

// window returns what a look covers that makes ticks until a time.
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

// madeUp returns which of the late ticks, from the first to the last, get a task.
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
