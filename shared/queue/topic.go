package queue

import (
	"context"
	"hash/fnv"
	"strings"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// Tasks of topics are listed over all topics, as in Sling's job handling: by creation, and by their end once they are finished. A
// single partition for all would be a hot one on some stores; with one for each topic, the cost of a list would grow with the number
// of topics. So a topic belongs to one of sixteen groups by its hash: a list of all topics reads sixteen partitions, a list of
// one topic a single one.
const (
	topicRoot   = "/topics/"
	topicShards = "0123456789abcdef"
)

// topicGroup returns the group of a topic's job; "" for other jobs.
func topicGroup(job string) string {
	if !strings.HasPrefix(job, topicRoot) {
		return ""
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(job)) // never fails
	sum := h.Sum32()
	return "/topics#" + string(topicShards[(sum^sum>>16)&15])
}

// topicGroups returns all groups of topics.
func topicGroups() []string {
	groups := make([]string, len(topicShards))
	for i, shard := range topicShards {
		groups[i] = "/topics#" + string(shard)
	}
	return groups
}

// ofTopic reports whether a task is of a topic.
func ofTopic(t *task.Task) bool { return t.Dialect == task.Job && strings.HasPrefix(t.Job, topicRoot) }

// maybeOfTopic reports whether a topic's task may have the id.
func maybeOfTopic(uuid string) bool {
	hash := task.ID(uuid).Group()
	for _, group := range topicGroups() {
		if task.GroupHash(group) == hash {
			return true
		}
	}
	return false
}

// leavesNothing reports whether a task is gone when it has succeeded: a topic's task whose queue does not keep jobs, unless it
// must be kept to recognize a repeated request, by a schedule's tick or a unique key with a window.
func leavesNothing(set *definition.Set, t *task.Task) bool {
	return t.State == task.Succeeded && ofTopic(t) && t.Schedule == "" && t.UniqueUntil <= t.Finished &&
		!set.QueueOf(t.Queue).KeepJobs
}

// past is the entry of a topic's finished task in the history, which is ordered by the time of the end.
type past struct {
	Job   string     `json:"j"`
	State task.State `json:"st"`
}

func historyPartition(group string) string { return "history/" + group }

func historyKey(t *task.Task) store.Key {
	return work(historyPartition(t.ListedUnder()), stamp(t.Finished)+t.ID.UUID())
}

// maxConclude is how many operations conclude returns at most.
const maxConclude = 3

// conclude returns the operations on a task that is finished: it is kept, or removed if gone, and its unique key is freed or expires.
func conclude(t *task.Task, gone bool, cond store.Condition) []store.Op {
	uuid := t.ID.UUID()
	ops := make([]store.Op, 0, maxConclude)
	switch {
	case gone:
		ops = append(ops, store.Delete(taskKey(uuid), cond))
		if t.Apart > 0 {
			ops = append(ops, store.Delete(payloadKey(uuid), store.Always))
		}
	default:
		ops = append(ops, store.Put(store.Item{Key: taskKey(uuid), Value: encode(t)}, cond))
		if ofTopic(t) {
			ops = append(ops, store.Put(store.Item{Key: historyKey(t), Value: encode(past{t.Job, t.State})}, store.Always))
		}
	}
	if t.HoldsUnique() {
		ops = append(ops, leaveUnique(t)) // ours while unfinished
	}
	return ops
}

// uniqueSpare is how long after a unique key's window the store removes its item: more than clocks differ.
const uniqueSpare = time.Hour

// leaveUnique returns the operation on the unique key of a task that has ended: the key is freed, or held for the rest of its
// window, after which the store removes its item.
func leaveUnique(t *task.Task) store.Op {
	key := uniqueKey(t.Job, t.Unique)
	if t.UniqueUntil <= t.Finished {
		return store.Delete(key, store.Always)
	}
	until := time.UnixMicro(t.UniqueUntil).Add(uniqueSpare)
	return store.Put(store.Item{Key: key, Value: []byte(t.ID), Expires: until}, store.Always)
}

// forget returns the operations that remove a finished task.
func forget(t *task.Task, version int64) []store.Op {
	uuid := t.ID.UUID()
	ops := []store.Op{store.Delete(taskKey(uuid), store.VersionIs(version))}
	if ofTopic(t) {
		ops = append(ops, store.Delete(historyKey(t), store.Always))
	}
	if t.Apart > 0 {
		ops = append(ops, store.Delete(payloadKey(uuid), store.Always))
	}
	return ops
}

// dropLog removes the log of a task that is gone. An error may leave a part of it.
func (q *Queue) dropLog(ctx context.Context, uuid string) error {
	return unavailable("remove a log", q.store.Remove(ctx, store.Range{Table: store.Work, Partition: logPartition(uuid)}))
}
