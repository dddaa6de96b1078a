package queue

import (
	"context"
	"strings"

	"github.com/millrace/millrace/shared/overview"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// Counts answers how many tasks of each state the jobs have whose paths begin with prefix, by path, as the journal adds
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
	waiting := map[string]int64{}
	for p, err := range q.entries(ctx, store.Range{Table: store.Work, Partition: partitionDue, Eventual: true}) {
		if err != nil {
			return err
		}
		if strings.HasPrefix(p.Job, prefix) {
			waiting[p.Job]++
		}
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
