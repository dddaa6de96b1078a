package queue

import (
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// Measures are what this process has seen of the tasks of all processes, without calls of its own: it looks at them anyway.
type Measures struct {
	// OldestWait is how long ago the oldest of the tasks that could start was created, at the newest sweep: of the first 16 of each
	// line. 0: none waited.
	OldestWait time.Duration

	// DueLag is how long what had fallen due was still where it waits for its time, at the newest [Queue.NotifyDue]. 0: nothing was.
	DueLag time.Duration

	// LeasesLost is how many leases this process has ended since their worker was not heard of.
	LeasesLost int64
}

// measured holds them.
type measured struct{ oldestWait, dueLag, leasesLost atomic.Int64 }

// Measures returns what this process has seen up to now.
func (q *Queue) Measures() Measures {
	return Measures{
		OldestWait: time.Duration(q.measured.oldestWait.Load()), DueLag: time.Duration(q.measured.dueLag.Load()),
		LeasesLost: q.measured.leasesLost.Load(),
	}
}

// since returns how long ago a time in microseconds since 1970 was; 0 if it is to come.
func (q *Queue) since(at int64) time.Duration {
	return max(0, time.Duration(q.micro()-at)*time.Microsecond)
}

// oldestOf returns how long ago the oldest task of these entries was created.
func (q *Queue) oldestOf(entries []store.Item) (oldest time.Duration) {
	for i := range entries {
		p, err := layout.ReadPlace(&entries[i])
		if err != nil {
			continue // a claim says so
		}
		if id, err := task.ParseID(p.UUID); err == nil {
			oldest = max(oldest, q.since(id.Time()))
		}
	}
	return oldest
}
