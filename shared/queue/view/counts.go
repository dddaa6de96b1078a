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

// delayed returns how many tasks of each job wait for a time.
func (v *Tasks) delayed(ctx context.Context, prefix string) (map[string]int64, error) {
	counts := map[string]int64{}
	waiting, err := v.timed(ctx, v.o.Now().UnixMicro())
	if err != nil || len(waiting) == 0 {
		return counts, err
	}
	err = v.eachQueued(ctx, prefix, func(k event.Key) {
		if _, waits := waiting.find(k.TaskID); waits {
			counts[k.Path]++
		}
	})
	return counts, err
}

// timed is a queued task that was given a time from which it may start, in microseconds since 1970.
type timed struct {
	uuid [16]byte
	at   int64
}

// timedTasks are in the order of their UUIDs.
type timedTasks []timed

// timed returns the tasks that were given a time later than after. The projection of work knows the times and not the jobs, that of
// tasks the jobs and not the times: 24 bytes are kept for each task that has a time, since there may be millions.
func (v *Tasks) timed(ctx context.Context, after int64) (timedTasks, error) {
	var all timedTasks
	_, err := v.o.Journal.Snapshot(ctx, projection.WorkName, func(key string, value []byte) {
		if t, ok := projection.ReadTimed(key, value); ok && t.At > after {
			all = append(all, timed{bytesOf(t.TaskID), t.At})
		}
	})
	slices.SortFunc(all, func(a, b timed) int { return bytes.Compare(a.uuid[:], b.uuid[:]) }) // ids begin with the name of a source, or not
	return all, err
}

// find returns the time of the task with that id, if it is one of all.
func (all timedTasks) find(id string) (at int64, ok bool) {
	uuid := bytesOf(id)
	i, ok := slices.BinarySearchFunc(all, uuid[:], func(t timed, uuid []byte) int { return bytes.Compare(t.uuid[:], uuid) })
	if ok {
		at = all[i].at
	}
	return at, ok
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

// OldestWaiting returns, by job path, since when the oldest queued task of each job could have been started: its creation, or the time
// that it was given. It is of jobs whose paths begin with prefix and that have a task which does not wait for a time. Its cost grows with
// the number of unfinished tasks.
func (v *Tasks) OldestWaiting(ctx context.Context, prefix string) (map[string]time.Time, error) {
	oldest, now := map[string]time.Time{}, v.o.Now().UnixMicro()
	timed, err := v.timed(ctx, 0)
	if err != nil {
		return nil, err
	}
	err = v.eachQueued(ctx, prefix, func(k event.Key) {
		at, _ := timed.find(k.TaskID)
		if at > now {
			return
		}
		since := time.UnixMicro(max(at, projection.CreatedAt(k.TaskID)))
		if before, known := oldest[k.Path]; !known || since.Before(before) {
			oldest[k.Path] = since
		}
	})
	return oldest, err
}
