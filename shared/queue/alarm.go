package queue

import "sync"

// alarms are when this process has something to look after, as far as it knows, in microseconds; 0: there is nothing. Due entries
// and leases have one each: looking at the ones need not cost a look at the others.
type alarms struct {
	mu          sync.Mutex
	due, leases int64
	set         chan struct{} // with room for one: an alarm is earlier than before
}

// wakeForDue sees to it that somebody looks at what is due at that time in microseconds, at the latest.
func (q *Queue) wakeForDue(at int64) { q.alarms.wake(&q.alarms.due, at) }

// wakeForLease does the same for leases that run out.
func (q *Queue) wakeForLease(at int64) { q.alarms.wake(&q.alarms.leases, at) }

func (s *alarms) wake(a *int64, at int64) {
	s.mu.Lock()
	earlier := *a == 0 || at < *a
	if earlier {
		*a = at
	}
	s.mu.Unlock()
	if earlier {
		select {
		case s.set <- struct{}{}:
		default:
		}
	}
}

// over reports whether the time has come, and clears the alarm if so.
func (s *alarms) over(a *int64, now int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if *a == 0 || *a > now {
		return false
	}
	*a = 0
	return true
}

// next returns the earliest alarm; 0: none.
func (s *alarms) next() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.due == 0 || s.leases != 0 && s.leases < s.due {
		return s.leases
	}
	return s.due
}
