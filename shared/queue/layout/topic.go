package layout

import (
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
	TopicRoot   = "/topics/"
	TopicShards = "0123456789abcdef"
)

// TopicGroup returns the group of a topic's job; "" for other jobs.
func TopicGroup(job string) string {
	if !strings.HasPrefix(job, TopicRoot) {
		return ""
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(job)) // never fails
	sum := h.Sum32()
	return "/topics#" + string(TopicShards[(sum^sum>>16)&15])
}

// TopicGroups returns all groups of topics.
func TopicGroups() []string {
	groups := make([]string, len(TopicShards))
	for i, shard := range TopicShards {
		groups[i] = "/topics#" + string(shard)
	}
	return groups
}

// OfTopic reports whether a task is of a topic.
func OfTopic(t *task.Task) bool { return t.Dialect == task.Job && strings.HasPrefix(t.Job, TopicRoot) }

// maybeOfTopic reports whether a topic's task may have the id.
func maybeOfTopic(uuid string) bool {
	hash := task.ID(uuid).Group()
	for _, group := range TopicGroups() {
		if task.GroupHash(group) == hash {
			return true
		}
	}
	return false
}

// LeavesNothing reports whether a task is gone when it has succeeded: a topic's task whose queue does not keep jobs, unless it
// must be kept to recognize a repeated request, by a schedule's tick or a unique key with a window.
func LeavesNothing(set *definition.Set, t *task.Task) bool {
	return t.State == task.Succeeded && OfTopic(t) && t.Schedule == "" && t.UniqueUntil <= t.Finished &&
		!set.QueueOf(t.Queue).KeepJobs
}

// Past is the entry of a topic's finished task in the history, which is ordered by the time of the end.
type Past struct {
	Job   string     `json:"j"`
	State task.State `json:"st"`
}

// HistoryPartition returns the partition of the history of a group of topics.
func HistoryPartition(group string) string { return "history/" + group }

// HistoryKey returns the key of a finished task's entry in the history.
func HistoryKey(t *task.Task) store.Key {
	return Key(HistoryPartition(t.ListedUnder()), Stamp(t.Finished)+t.ID.UUID())
}

// MaxConclude is how many operations [Conclude] returns at most.
const MaxConclude = 3

// Conclude returns the operations on a task that is finished: it is kept, or removed if gone, and its unique key is freed or expires.
func Conclude(t *task.Task, gone bool, cond store.Condition) []store.Op {
	uuid := t.ID.UUID()
	ops := make([]store.Op, 0, MaxConclude)
	switch {
	case gone:
		ops = append(ops, store.Delete(TaskKey(uuid), cond))
		if t.Apart > 0 {
			ops = append(ops, store.Delete(PayloadKey(uuid), store.Always))
		}
	default:
		ops = append(ops, store.Put(store.Item{Key: TaskKey(uuid), Value: Encode(t)}, cond))
		if OfTopic(t) {
			ops = append(ops, store.Put(store.Item{Key: HistoryKey(t), Value: Encode(Past{t.Job, t.State})}, store.Always))
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
	key := UniqueKey(t.Job, t.Unique)
	if t.UniqueUntil <= t.Finished {
		return store.Delete(key, store.Always)
	}
	until := time.UnixMicro(t.UniqueUntil).Add(uniqueSpare)
	return store.Put(store.Item{Key: key, Value: []byte(t.ID), Expires: until}, store.Always)
}

// Forget returns the operations that remove a finished task.
func Forget(t *task.Task, version int64) []store.Op {
	uuid := t.ID.UUID()
	ops := []store.Op{store.Delete(TaskKey(uuid), store.VersionIs(version))}
	if OfTopic(t) {
		ops = append(ops, store.Delete(HistoryKey(t), store.Always))
	}
	if t.Apart > 0 {
		ops = append(ops, store.Delete(PayloadKey(uuid), store.Always))
	}
	return ops
}
