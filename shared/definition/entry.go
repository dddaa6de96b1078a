package definition

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
)

// The set is stored as a head and as many parts as it needs, since an item of DynamoDB has at most 400 KB. All of them are
// written together, and have the position of that write as their version.
const (
	partition = "set"
	headSort  = "0"
	partBytes = store.MaxValue
	maxParts  = 7 // with the head and the events in one write

	maxEvents  = store.MaxWriteBytes - maxParts*partBytes - 16<<10 // bytes of events beside maxParts parts
	eventBytes = 32                                                // bytes of an event beside its type, its key and its fields
)

var (
	errUnchanged = errors.New("definition: nothing to write")
	errDamaged   = errors.New("definition: the stored set cannot be read: damaged, or written by a newer version")

	// ErrTooLarge is returned for a set that does not fit into one write, some 2.5 MB with the events of what changes.
	ErrTooLarge = errors.New("definition: the set is too large")
)

// entry is what is stored: a set, and the digest of the file that was applied last.
type entry struct {
	set     *Set
	file    string // of what the server's file declared when it was applied last
	version int64  // 0: nothing is stored
	parts   int
}

// head is the value of the head's item.
type head struct {
	Parts int    `json:"parts"`
	File  string `json:"file"`
}

// digest returns a hash of what the set declares, in hexadecimal.
func (s *Set) digest() string {
	sum := sha256.Sum256(s.stored())
	return hex.EncodeToString(sum[:])
}

func headKey() store.Key {
	return store.Key{Table: store.Definitions, Partition: partition, Sort: headSort}
}

func partKey(i int) store.Key {
	return store.Key{Table: store.Definitions, Partition: partition, Sort: "1." + strconv.Itoa(i)}
}

// nothing returns the entry that is in force before anything was applied.
func nothing() entry {
	empty := new(Set)
	return entry{set: empty, file: empty.digest()}
}

// maxLoads is how many times load tries to read a set that is being replaced.
const maxLoads = 20

// load reads the stored entry. It returns known instead if that has the same version; known may be nil.
func (b *Catalog) load(ctx context.Context, known *reading) (entry, error) {
	for range maxLoads {
		e, whole, err := b.loadOnce(ctx, known)
		if err != nil || whole {
			return e, err
		}
	}
	return entry{}, fmt.Errorf("definition: read: %w: it is replaced all the time", journal.ErrUnavailable)
}

// loadOnce returns false if it read a part of another version than the head's, because the set was replaced in between.
func (b *Catalog) loadOnce(ctx context.Context, known *reading) (e entry, whole bool, err error) {
	items, err := b.store.Get(ctx, headKey())
	if err != nil {
		return e, false, unavailable(err)
	}
	if items[0] == nil {
		return nothing(), true, nil
	}
	var h head
	if err := json.Unmarshal(items[0].Value, &h); err != nil {
		return e, false, fmt.Errorf("%w: %w", errDamaged, err)
	}
	e = entry{file: h.File, version: items[0].Version, parts: h.Parts}
	if known != nil && known.version == e.version {
		return known.entry, true, nil
	}
	if e.set, err = b.parts(ctx, e); e.set != nil {
		e.set.revision = e.version
	}
	return e, e.set != nil, err
}

// parts reads the set; it returns nil if the parts are no longer those of the entry.
func (b *Catalog) parts(ctx context.Context, e entry) (*Set, error) {
	keys := make([]store.Key, e.parts)
	for i := range keys {
		keys[i] = partKey(i)
	}
	items, err := b.store.Get(ctx, keys...)
	if err != nil {
		return nil, unavailable(err)
	}
	var text []byte
	for _, item := range items {
		if item == nil || item.Version != e.version {
			return nil, nil
		}
		text = append(text, item.Value...)
	}
	return decode(text)
}

func unavailable(err error) error {
	return journal.Failure("read the definitions", err)
}

// change returns the write that replaces before by e, and the number of parts.
func (e entry) change(before entry, events []event.Event) (_ journal.Change, parts int, _ error) {
	text := e.set.stored()
	parts = (len(text) + partBytes - 1) / partBytes
	if size, most := len(text)+sizeOf(events), maxParts*partBytes+maxEvents; parts > maxParts || size > most {
		return journal.Change{}, 0, fmt.Errorf("%w: %d bytes with the events, at most %d", ErrTooLarge, size, most)
	}
	value, err := json.Marshal(head{Parts: parts, File: e.file})
	if err != nil {
		return journal.Change{}, 0, err
	}
	// Closes the race between two concurrent applies: the second one has read what the first replaced.
	unchanged := store.Absent
	if before.version > 0 {
		unchanged = store.VersionIs(before.version)
	}
	return journal.Change{Events: events, Ops: func(journal.Receipt) []store.Op {
		ops := []store.Op{store.Put(store.Item{Key: headKey(), Value: value}, unchanged)}
		for i := range parts {
			part := text[i*partBytes : min((i+1)*partBytes, len(text))]
			ops = append(ops, store.Put(store.Item{Key: partKey(i), Value: part}, store.Always))
		}
		for i := parts; i < before.parts; i++ {
			ops = append(ops, store.Delete(partKey(i), store.Always))
		}
		return ops
	}}, parts, nil
}

// sizeOf returns the approximate size of events in bytes.
func sizeOf(events []event.Event) int {
	size := 0
	for i := range events {
		size += len(events[i].Type) + len(events[i].Key.Path) + len(events[i].Fields) + eventBytes
	}
	return size
}
