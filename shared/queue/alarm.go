package queue

import "sync"

// alarms holds when this process must look at due entries and at leases, in microseconds since 1970; 0: not at all, as far as it
// knows. Each has its own alarm, so that a look at one does not cost a look at the other.
type alarms struct {
	mu          sync.Mutex
	due, leases int64
	set         chan struct{} // buffer of 1: an alarm is earlier than before
}

// wakeForDue sets the alarm of due entries to at, in microseconds since 1970, unless it is earlier.
func (q *Queue) wakeForDue(at int64) { q.alarms.wake(&q.alarms.due, at) }

// wakeForLease does the same for the alarm of leases.
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

// over reports whether the alarm's time has come, and clears it if so.
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
	return earlier(s.due, s.leases)
}
