package view

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/task"
)

// Counts returns, by job path, how many tasks of each state the jobs have whose paths begin with prefix, by the journal's
// projection. Queued tasks that wait for a time are [task.Waiting], and so are all of a job that a rule holds.
func (v *Tasks) Counts(ctx context.Context, prefix string) (map[string]map[task.State]int64, error) {
	counts := map[string]map[task.State]int64{}
	_, err := v.o.Journal.Snapshot(ctx, projection.TaskCountsName, func(path string, value []byte) {
		if strings.HasPrefix(path, prefix) {
			counts[path] = projection.ReadTaskCounts(value)
		}
	})
	if err != nil {
		return nil, err
	}
	return counts, v.countWaiting(ctx, prefix, counts)
}

// countWaiting splits the queued tasks of counts into waiting and ready ones.
func (v *Tasks) countWaiting(ctx context.Context, prefix string, counts map[string]map[task.State]int64) error {
	rules, err := v.o.Rulebook.InForce(ctx)
	if err != nil {
		return err
	}
	waiting, err := v.delayed(ctx, prefix)
	if err != nil {
		return err
	}
	for path, states := range counts {
		held := min(waiting[path], states[task.Ready])
		if rules.Holds(path) {
			held = states[task.Ready]
		}
		states[task.Ready] -= held
		states[task.Waiting] += held
	}
	return nil
}

// delayed returns how many tasks of each job wait for a time. The projection of work knows the times and not the jobs, that of tasks
// the jobs and not the times: 16 bytes are kept for each task that waits, since there may be millions.
func (v *Tasks) delayed(ctx context.Context, prefix string) (map[string]int64, error) {
	now, until := v.o.Now().UnixMicro(), [][16]byte{}
	_, err := v.o.Journal.Snapshot(ctx, projection.WorkName, func(key string, value []byte) {
		if t, ok := projection.ReadTimed(key, value); ok && t.At > now {
			until = append(until, bytesOf(t.TaskID))
		}
	})
	counts := map[string]int64{}
	if err != nil || len(until) == 0 {
		return counts, err
	}
	compare := func(a, b [16]byte) int { return bytes.Compare(a[:], b[:]) }
	slices.SortFunc(until, compare) // ids begin with the name of a source, or not
	err = v.eachQueued(ctx, prefix, func(k event.Key) {
		if _, waits := slices.BinarySearchFunc(until, bytesOf(k.TaskID), compare); waits {
			counts[k.Path]++
		}
	})
	return counts, err
}

// bytesOf returns the UUID that a task's id ends in.
func bytesOf(id string) (uuid [16]byte) {
	text := id[max(0, len(id)-len("00000000-0000-0000-0000-000000000000")):]
	for i, n := 0, 0; i+1 < len(text) && n < len(uuid); {
		if text[i] == '-' {
			i++
			continue
		}
		uuid[n] = nibble(text[i])<<4 | nibble(text[i+1])
		i, n = i+2, n+1
	}
	return uuid
}

func nibble(c byte) byte {
	if c >= 'a' {
		return c - 'a' + 10
	}
	return c - '0'
}

// eachQueued calls each for every queued task of the jobs whose paths begin with prefix. It passes over the projection of unfinished
// tasks in memory, and reads from the store only what is new on the journal.
func (v *Tasks) eachQueued(ctx context.Context, prefix string, each func(event.Key)) error {
	of := journal.Part{Prefixes: []string{prefix}}
	_, err := v.o.Journal.SnapshotOf(ctx, projection.TasksName, of, func(key string, shown []byte) {
		if t := projection.ReadOpenTask(key, shown); !t.Started {
			each(t.Key)
		}
	})
	return err
}

// OldestWaiting returns, by job path, when the oldest queued task of each job was created, of jobs that have one and whose paths
// begin with prefix. Its cost grows with the number of unfinished tasks.
func (v *Tasks) OldestWaiting(ctx context.Context, prefix string) (map[string]time.Time, error) {
	oldest := map[string]time.Time{}
	err := v.eachQueued(ctx, prefix, func(k event.Key) {
		created := time.UnixMicro(projection.CreatedAt(k.TaskID))
		if before, known := oldest[k.Path]; !known || created.Before(before) {
			oldest[k.Path] = created
		}
	})
	return oldest, err
}
