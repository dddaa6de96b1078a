package layout

import (
	"context"
	"iter"
	"strings"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// Entry is a queued task's entry in an index: ready, due or held. It is a hint: it counts while the task is queued and has the
// version that the entry was made for. So the end of a task need not remove its entry; a claim that meets a stale one does.
type Entry struct {
	UUID     string `json:"id"`
	Of       int64  `json:"v"` // the task's version
	Job      string `json:"j"`
	Queue    string `json:"q"`
	Where    Line   `json:"ln,omitzero"` // default: that of Queue
	Priority int64  `json:"p,omitempty"`
	Turn     string `json:"t,omitempty"` // fairness key; default: Job
	Key      string `json:"ck,omitempty"`
	Limit    int    `json:"cl,omitempty"`
	Late     string `json:"u,omitempty"` // the partition of the unique key that is taken as the task falls due
	// NotBefore is set in an ordered queue, where a task that waits for its next attempt keeps its rank; microseconds since 1970.
	NotBefore int64  `json:"nb,omitempty"`
	Taken     *Taken `json:"tk,omitempty"`

	Prefer string `json:"pi,omitempty"` // the instance that the task prefers
	Until  int64  `json:"pu,omitempty"` // of an entry that is kept for it: when the fallback entry is due, microseconds since 1970
	Rank   string `json:"pr,omitempty"` // of a fallback entry: its rank in the line
}

// Taken is a mark for other processes: a claimer is about to start the tasks of this entry and of those up to another.
type Taken struct {
	Until int64  `json:"u"`  // when it expires, microseconds since 1970
	To    string `json:"to"` // sort key of the last entry
}

// TakenFor is how long a mark keeps other claimers from marked entries.
const TakenFor = 3 * time.Second

// Counts reports whether a mark is in force. One that would be for longer than 2*TakenFor was made by a clock that runs ahead,
// and is ignored.
func (t *Taken) Counts(now int64) bool {
	return t != nil && t.Until > now && t.Until <= now+2*TakenFor.Microseconds()
}

// Place is an entry with its key.
type Place struct {
	Entry
	At      store.Key
	Version int64 // of the item
}

// EntryOf returns the entry of a task in a line.
func EntryOf(t *task.Task, l Line) Entry {
	e := Entry{UUID: t.ID.UUID(), Job: t.Job, Queue: t.Queue, Priority: t.Priority, Prefer: prefers(t)}
	e.SetLine(l)
	if t.Turn() != t.Job {
		e.Turn = t.Turn()
	}
	if t.Concurrency != nil {
		e.Key, e.Limit = t.Concurrency.Key, t.Concurrency.Limit
	}
	if t.Late && t.Attempt == 0 {
		e.Late = UniqueKey(t.Job, t.Unique).Partition
	}
	return e
}

// Line returns the line that the task waits in.
func (e *Entry) Line() Line {
	if e.Where == (Line{}) {
		return Line{Queue: e.Queue}
	}
	return e.Where
}

// SetLine sets the line that the task waits in.
func (e *Entry) SetLine(l Line) {
	if e.Where = l; l == (Line{Queue: e.Queue}) {
		e.Where = Line{}
	}
}

// FairnessKey returns the key with which the task takes turns in a round-robin queue.
func (e *Entry) FairnessKey() string {
	if e.Turn != "" {
		return e.Turn
	}
	return e.Job
}

// EntryVersion returns the version of an entry's item. It is not a journal position, since entries are moved and marked without an
// event; it starts at a higher value with each version of the task, so that no two entries at the same key have the same one.
func EntryVersion(of int64) int64 { return of << 16 }

// PlaceAt returns an entry as it is to be stored at a key.
func PlaceAt(key store.Key, e Entry) Place { return Place{e, key, EntryVersion(e.Of)} }

// Put returns the operation that stores the entry.
func (p *Place) Put(cond store.Condition) store.Op {
	return store.Put(store.Item{Key: p.At, Version: p.Version, Value: Encode(&p.Entry)}, cond)
}

// Change returns the operation that changes the stored entry to this one, under the condition that it is as it was read.
func (p *Place) Change() store.Op {
	return store.Put(store.Item{Key: p.At, Version: p.Version + 1, Value: Encode(&p.Entry)}, store.VersionIs(p.Version))
}

// PutFor returns the operation that stores the entry of a task with the write that changes the task.
func (p *Place) PutFor(r journal.Receipt) store.Op {
	p.Of, p.Version = r.Position, EntryVersion(r.Position)
	return p.Put(store.Always)
}

// Remove returns the operation that removes the entry of a task at a key with the write that changes the task. The version is that of the entry,
// which is outside the journal's order.
func Remove(at store.Key, version int64) store.Op {
	op := store.Delete(at, store.Always)
	op.Item.Version = version
	return op
}

// ReadPlace returns the entry that an item holds.
func ReadPlace(item *store.Item) (Place, error) {
	p := Place{At: item.Key, Version: item.Version}
	return p, Decode(item, &p.Entry)
}

// Order returns the sort key in a held index: by priority, then creation.
func (e *Entry) Order() string { return ByPriority(e.Priority, e.UUID) }

// ByRank compares two entries of one index, or of one queue's ready indexes, by their order.
func ByRank(a, b Place) int { return strings.Compare(a.At.Sort, b.At.Sort) }

// Settle sets the line of an entry that is about to become ready. One whose job is no longer declared keeps the line that it was
// made for: a claim decides about it.
func (e *Entry) Settle(set *definition.Set) {
	if l, _, declared := HomeOf(set, e.Queue, e.Job); declared {
		e.SetLine(l)
	}
}

// OtherEntry returns the operation that removes the other of a task's two entries, if the task is kept for an instance; else none.
func (p *Place) OtherEntry() []store.Op {
	switch {
	case p.Until > 0:
		return []store.Op{store.Delete(DueKey(p.Until, p.UUID), store.Always)}
	case p.Rank != "":
		return []store.Op{store.Delete(Key(ReadyPartition(p.Line().KeptFor(p.Prefer)), p.Rank), store.Always)}
	}
	return nil
}

// Home returns the line of an entry, or that in which it would be if it were not kept for an instance.
func (e *Entry) Home() Line { return e.Line().KeptFor("") }

// Single returns the entry without its hint and its mark.
func (e Entry) Single() Entry {
	e.Where.Name = ""
	e.Prefer, e.Until, e.Rank, e.Taken = "", 0, "", nil
	return e
}

// prefers returns the preferred instance of a task; "" after its first attempt.
func prefers(t *task.Task) string {
	if t.Attempt > 0 {
		return ""
	}
	return t.Prefer
}

// DueTime returns when a due entry falls due, in microseconds since 1970.
func DueTime(p *Place) int64 { return Unstamp(p.At.Sort) }

// Places reads one page of entries of an index.
func Places(ctx context.Context, s store.Store, r store.Range) (found []Place, more bool, err error) {
	page, err := s.Query(ctx, r)
	if err != nil {
		return nil, false, Failure("read an index", err)
	}
	found, err = ReadPlaces(page.Items)
	return found, page.More, err
}

// PlacesIn reads one page of entries of an index that may lie in several partitions, see [QueryParts].
func PlacesIn(ctx context.Context, s store.Store, partitions []string, r store.Range) (found []Place, more bool, err error) {
	page, err := QueryParts(ctx, s, partitions, r)
	if err != nil {
		return nil, false, Failure("read an index", err)
	}
	found, err = ReadPlaces(page.Items)
	return found, page.More, err
}

// ReadPlaces returns the entries that items of an index hold.
func ReadPlaces(items []store.Item) ([]Place, error) {
	found := make([]Place, 0, len(items))
	for i := range items {
		if IsSignpost(&items[i]) {
			continue
		}
		p, err := ReadPlace(&items[i])
		if err != nil {
			return nil, err
		}
		found = append(found, p)
	}
	return found, nil
}

// Entries returns all entries of a range of an index in their order, by as many queries as that takes.
func Entries(ctx context.Context, s store.Store, r store.Range) iter.Seq2[Place, error] {
	return func(yield func(Place, error) bool) {
		for item, err := range store.All(ctx, s, r) {
			if err != nil {
				yield(Place{}, Failure("read an index", err))
				return
			}
			if IsSignpost(item) {
				continue
			}
			p, err := ReadPlace(item)
			if !yield(p, err) || err != nil {
				return
			}
		}
	}
}

// ByPriority returns a rank by priority, high first, then creation.
func ByPriority(priority int64, uuid string) string {
	return hexadecimal(^(uint64(priority)^1<<63), 16) + uuid
}
