package view

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/projection"
)

// Statistics counts what has become of tasks since the journal began, as Sling's job handling does. It is a fold of the journal: no
// counter is written with the tasks.
type Statistics struct {
	Queued, Active int64           // tasks that are queued, and that run, now
	Finished       int64           // successes
	Failed         int64           // attempts that failed and are tried again
	Cancelled      int64           // given up, rejected, stopped or removed
	Waiting        time.Duration   // average time from when a task might start to its start
	Processing     time.Duration   // average duration of the attempts that succeeded
	done           projection.Done // sums and counts of the averages
}

// Processed returns the sum of Finished, Failed and Cancelled.
func (s *Statistics) Processed() int64 { return s.Finished + s.Failed + s.Cancelled }

// add adds the counters of a job.
func (s *Statistics) add(d *projection.Done) {
	sum := &s.done
	sum.Starts, sum.Waited, sum.Ends, sum.Processed = sum.Starts+d.Starts, sum.Waited+d.Waited, sum.Ends+d.Ends, sum.Processed+d.Processed
	s.Queued, s.Active = s.Queued+max(d.Queued, 0), s.Active+max(d.Active, 0)
	s.Finished, s.Failed, s.Cancelled = s.Finished+d.Finished, s.Failed+d.Failed, s.Cancelled+d.Cancelled
	if sum.Starts > 0 {
		s.Waiting = time.Duration(sum.Waited/sum.Starts) * time.Microsecond
	}
	if sum.Ends > 0 {
		s.Processing = time.Duration(sum.Processed/sum.Ends) * time.Microsecond
	}
}

// Add adds the statistics of other jobs; the averages are then of all of them.
func (s *Statistics) Add(more Statistics) {
	d := more.done
	d.Queued, d.Active, d.Finished, d.Failed, d.Cancelled = more.Queued, more.Active, more.Finished, more.Failed, more.Cancelled
	s.add(&d)
}

// Statistics returns the statistics of the jobs whose paths begin with prefix, by path.
func (v *Tasks) Statistics(ctx context.Context, prefix string) (map[string]Statistics, error) {
	all := map[string]Statistics{}
	_, err := v.o.Journal.Snapshot(ctx, projection.WorkName, func(key string, value []byte) {
		d, ok := projection.ReadDone(key, value)
		if !ok || !strings.HasPrefix(key, prefix) {
			return
		}
		var s Statistics
		s.add(&d)
		all[key] = s
	})
	return all, err
}

// QueueStatistics returns the statistics of queues, by name: each is of the jobs that are declared for the queue now.
func (v *Tasks) QueueStatistics(ctx context.Context) (map[string]Statistics, error) {
	set, err := v.o.Definitions.Current(ctx)
	if err != nil {
		return nil, err
	}
	jobs, err := v.Statistics(ctx, "/")
	if err != nil {
		return nil, err
	}
	queues := map[string]Statistics{}
	for path, of := range jobs {
		job, _ := set.JobOf(path)
		name := cmp.Or(job.Queue, definition.MainQueue)
		s := queues[name]
		s.Add(of)
		queues[name] = s
	}
	return queues, nil
}
