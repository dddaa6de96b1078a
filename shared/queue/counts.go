package queue

import (
	"context"
	"strings"
	"time"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/overview"
	"github.com/millrace/millrace/shared/task"
)

// Counts returns how many tasks of each state the jobs have whose paths begin with prefix, by path, as the journal adds
// them up. Those that wait for a time are [task.Waiting], and so are all queued tasks of a job that a rule holds.
func (q *Queue) Counts(ctx context.Context, prefix string) (map[string]map[task.State]int64, error) {
	counts := map[string]map[task.State]int64{}
	_, err := q.journal.Snapshot(ctx, overview.TaskCountsName, func(path string, value []byte) {
		if !strings.HasPrefix(path, prefix) {
			return
		}
		counts[path] = map[task.State]int64{}
		for state, n := range overview.ReadTaskCounts(value) {
			counts[path][task.State(state)] = n
		}
	})
	if err != nil {
		return nil, err
	}
	return counts, q.countWaiting(ctx, prefix, counts)
}

// countWaiting tells those that wait for a time apart from those that are ready.
func (q *Queue) countWaiting(ctx context.Context, prefix string, counts map[string]map[task.State]int64) error {
	rules, err := q.rules.read(ctx, q)
	if err != nil {
		return err
	}
	waiting, err := q.delayed(ctx, prefix)
	if err != nil {
		return err
	}
	for path, states := range counts {
		held := min(waiting[path], states[task.Ready])
		if rules.holds(path) {
			held = states[task.Ready]
		}
		states[task.Ready] -= held
		states[task.Waiting] += held
	}
	return nil
}

// delayed returns how many tasks wait for a time to come, by their jobs.
func (q *Queue) delayed(ctx context.Context, prefix string) (map[string]int64, error) {
	now, until := q.micro(), map[string]bool{}
	_, err := q.journal.Snapshot(ctx, overview.WorkName, func(key string, value []byte) {
		if id, at, ok := overview.ReadStart(key, value); ok && at > now {
			until[id] = true
		}
	})
	counts := map[string]int64{}
	if err != nil || len(until) == 0 {
		return counts, err
	}
	err = q.eachQueued(ctx, prefix, func(k event.Key) {
		if until[k.TaskID] {
			counts[k.Path]++
		}
	})
	return counts, err
}

// eachQueued calls each for every task that is queued of the jobs whose paths begin with prefix. It is a pass over what the process
// knows of unfinished tasks, and asks the store no more than what is new on the journal.
func (q *Queue) eachQueued(ctx context.Context, prefix string, each func(event.Key)) error {
	_, err := q.journal.Snapshot(ctx, overview.TasksName, func(key string, shown []byte) {
		if strings.HasPrefix(key, prefix) && !overview.IsStarted(shown) {
			each(overview.TaskKey(key))
		}
	})
	return err
}

// OldestWaiting returns the creation of the oldest queued task of each job whose path begins with prefix and that has one, by
// path. Like Counts, it costs by the tasks that are not finished, and a second look at what the process knows of them.
func (q *Queue) OldestWaiting(ctx context.Context, prefix string) (map[string]time.Time, error) {
	oldest := map[string]time.Time{}
	err := q.eachQueued(ctx, prefix, func(k event.Key) {
		created := time.UnixMicro(overview.CreatedAt(k.TaskID))
		if before, known := oldest[k.Path]; !known || created.Before(before) {
			oldest[k.Path] = created
		}
	})
	return oldest, err
}
