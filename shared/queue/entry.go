package queue

import (
	"context"
	"iter"
	"strings"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// entry is a queued task's entry in an index: ready, due or held. It is a hint: it counts while the task is queued and has the
// version that the entry was made for. So the end of a task need not remove its entry; a claim that meets a stale one does.
type entry struct {
	UUID     string `json:"id"`
	Of       int64  `json:"v"` // the task's version
	Job      string `json:"j"`
	Queue    string `json:"q"`
	Line     line   `json:"ln,omitzero"` // default: that of Queue
	Priority int64  `json:"p,omitempty"`
	Turn     string `json:"t,omitempty"` // fairness key; default: Job
	Key      string `json:"ck,omitempty"`
	Limit    int    `json:"cl,omitempty"`
	Late     string `json:"u,omitempty"` // the partition of the unique key that is taken at the start
	// NotBefore is set in an ordered queue, where a task that waits for its next attempt keeps its rank; microseconds since 1970.
	NotBefore int64  `json:"nb,omitempty"`
	Taken     *taken `json:"tk,omitempty"`

	Prefer string `json:"pi,omitempty"` // the instance that the task prefers; see prefer.go
	Until  int64  `json:"pu,omitempty"` // of an entry that is kept for it: when the fallback entry is due, microseconds since 1970
	Rank   string `json:"pr,omitempty"` // of a fallback entry: its rank in the line
}

// taken is a mark for other processes: a claimer is about to start the tasks of this entry and of those up to another.
type taken struct {
	Until int64  `json:"u"`  // when it expires, microseconds since 1970
	To    string `json:"to"` // sort key of the last entry
}

// place is an entry with its key.
type place struct {
	entry
	key     store.Key
	version int64 // of the item
}

func entryOf(t *task.Task, l line) entry {
	e := entry{UUID: t.ID.UUID(), Job: t.Job, Queue: t.Queue, Priority: t.Priority, Prefer: prefers(t)}
	e.setLine(l)
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

func (e *entry) line() line {
	if e.Line == (line{}) {
		return line{queue: e.Queue}
	}
	return e.Line
}

func (e *entry) setLine(l line) {
	if e.Line = l; l == (line{queue: e.Queue}) {
		e.Line = line{}
	}
}

func (e *entry) turn() string {
	if e.Turn != "" {
		return e.Turn
	}
	return e.Job
}

// entryVersion returns the version of an entry's item. It is not a journal position, since entries are moved and marked without an
// event; it starts at a higher value with each version of the task, so that no two entries at the same key have the same one.
func entryVersion(of int64) int64 { return of << 16 }

// placeAt returns an entry as it is to be stored at a key.
func placeAt(key store.Key, e entry) place { return place{e, key, entryVersion(e.Of)} }

// put returns the operation that stores the entry.
func (p *place) put(cond store.Condition) store.Op {
	return store.Put(store.Item{Key: p.key, Version: p.version, Value: encode(p.entry)}, cond)
}

// change returns the operation that changes the stored entry to this one, under the condition that it is as it was read.
func (p *place) change() store.Op {
	return store.Put(store.Item{Key: p.key, Version: p.version + 1, Value: encode(p.entry)}, store.VersionIs(p.version))
}

// putFor returns the operation that stores the entry of a task with the write that changes the task.
func (p *place) putFor(r journal.Receipt) store.Op {
	p.Of, p.version = r.Position, entryVersion(r.Position)
	return p.put(store.Always)
}

func readPlace(item *store.Item) (place, error) {
	p := place{key: item.Key, version: item.Version}
	return p, decode(item, &p.entry)
}

// order returns the sort key in a held index: by priority, then creation.
func (e *entry) order() string { return byPriority(e.Priority, e.UUID) }

func byRank(a, b place) int { return strings.Compare(a.key.Sort, b.key.Sort) }

// places reads one page of entries of an index.
func (q *Queue) places(ctx context.Context, r store.Range) (found []place, more bool, err error) {
	page, err := q.store.Query(ctx, r)
	if err != nil {
		return nil, false, unavailable("read an index", err)
	}
	found = make([]place, 0, len(page.Items))
	for i := range page.Items {
		p, err := readPlace(&page.Items[i])
		if err != nil {
			return nil, false, err
		}
		found = append(found, p)
	}
	return found, page.More, nil
}

// entries returns all entries of a range of an index in their order, by as many queries as that takes.
func (q *Queue) entries(ctx context.Context, r store.Range) iter.Seq2[place, error] {
	return func(yield func(place, error) bool) {
		for item, err := range store.All(ctx, q.store, r) {
			if err != nil {
				yield(place{}, unavailable("read an index", err))
				return
			}
			p, err := readPlace(item)
			if !yield(p, err) || err != nil {
				return
			}
		}
	}
}
