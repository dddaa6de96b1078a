package queue

import (
	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// entry is a queued task's place in an index: ready, due or held. It is a hint: it counts while the task is queued and has
// the version that the entry was made for. So whoever ends a task need not know where its entry is; whoever meets a stale
// one removes it.
type entry struct {
	UUID     string `json:"id"`
	Of       int64  `json:"v"` // the task's version
	Job      string `json:"j"`
	Queue    string `json:"q"`
	Line     string `json:"ln,omitempty"` // default: Queue
	Priority int64  `json:"p,omitempty"`
	Turn     string `json:"t,omitempty"` // fairness key; default: Job
	Key      string `json:"ck,omitempty"`
	Limit    int    `json:"cl,omitempty"`
	Late     string `json:"u,omitempty"` // the partition of the unique key that is taken at the start
	// NotBefore is set in an ordered queue, where a task that waits for its next attempt keeps its place.
	NotBefore int64  `json:"nb,omitempty"`
	Taken     *taken `json:"tk,omitempty"`

	Prefer string `json:"pi,omitempty"` // the instance that the task prefers; see prefer.go
	Until  int64  `json:"pu,omitempty"` // of an entry that is kept for it: when its stand-in is due
	Rank   string `json:"pr,omitempty"` // of a stand-in: its rank
}

// taken says that a claimer, across processes, is about to start this entry and those up to another.
type taken struct {
	Until int64  `json:"u"` // microseconds; afterwards it means nothing
	To    string `json:"to"`
}

// place is an entry where it stands.
type place struct {
	entry
	key     store.Key
	version int64 // of the item
}

func entryOf(t *task.Task, line string) entry {
	e := entry{UUID: t.ID.UUID(), Job: t.Job, Queue: t.Queue, Priority: t.Priority, Prefer: prefers(t)}
	if line != t.Queue {
		e.Line = line
	}
	if t.Turn() != t.Job {
		e.Turn = t.Turn()
	}
	if t.Concurrency != nil {
		e.Key, e.Limit = t.Concurrency.Key, t.Concurrency.Limit
	}
	if t.Late && t.Attempt == 0 {
		e.Late = uniqueKey(t.Job, t.Unique).Partition
	}
	return e
}

func (e *entry) line() string {
	if e.Line != "" {
		return e.Line
	}
	return e.Queue
}

func (e *entry) turn() string {
	if e.Turn != "" {
		return e.Turn
	}
	return e.Job
}

// lineOf returns which ready index a task of a job waits in. Those that this server runs wait in their queue's; those for
// instances wait apart by job, since each instance can run some of them only.
func lineOf(queue string, job definition.Job, declared bool) string {
	if declared && !job.Target.OnInstance() {
		return queue
	}
	return queue + "@" + job.Path
}

// entryVersion returns the version of an entry's item. It stands outside the journal's order, since entries are moved and
// taken without an event; it begins anew, higher, with each version of the task, so that no two entries at the same key
// are mistaken for each other.
func entryVersion(of int64, changes int64) int64 { return of<<16 | changes }

// put returns the operation that stores the entry at a key.
func (e entry) put(key store.Key, cond store.Condition) store.Op {
	return store.Put(store.Item{Key: key, Version: entryVersion(e.Of, 0), Value: encode(e)}, cond)
}

func readPlace(item *store.Item) (place, error) {
	p := place{key: item.Key, version: item.Version}
	return p, decode(item, &p.entry)
}

// order returns the sort key in a held index: by priority, then creation.
func (e *entry) order() string { return byPriority(e.Priority, e.UUID) }
