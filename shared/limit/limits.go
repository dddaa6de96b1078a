package limit

import (
	"context"
	"sync"

	"github.com/millrace/millrace/shared/store"
)

// Limits is one process's access to the limits of a store. Its methods may be called concurrently.
type Limits struct {
	store store.Store
	alone bool

	mu       sync.Mutex
	kept     map[string]*Set // taken slots, by limit, of a process alone; a limit that is not there is to be read
	changes  int             // counts changes, so that what was read before a change is not kept
	reserved map[string]*Set // slots of writes that are under way, by limit
	refused  map[string]bool // limits of which a caller found no free slot while some were reserved
}

// maxKept is how many limits are kept.
const maxKept = 4096

// New returns the Limits of a store. alone says that the process has the store to itself: then what was read is kept in memory, so
// the caller calls [Limits.Took], [Limits.GaveBack] and [Limits.Forget].
func New(s store.Store, alone bool) *Limits {
	return &Limits{store: s, alone: alone, reserved: map[string]*Set{}, refused: map[string]bool{}}
}

// Read returns the taken slots of a limit; the caller may keep the set. It costs a read, unless the limit is kept. Errors are the
// store's.
func (l *Limits) Read(ctx context.Context, limit string) (*Set, error) {
	known, changes := l.known(limit)
	if known != nil {
		return known, nil
	}
	set := &Set{}
	for item, err := range store.All(ctx, l.store, store.Range{Table: store.Work, Partition: partition(limit)}) {
		if err != nil {
			return nil, err
		}
		slot, err := stored(limit, item)
		if err != nil {
			return nil, err
		}
		set.add(&slot)
	}
	if l.alone {
		l.keep(limit, set, changes)
	}
	return set, nil
}

func (l *Limits) known(limit string) (set *Set, changes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if set = l.kept[limit]; set != nil {
		set = set.clone()
	}
	return set, l.changes
}

// keep keeps the set that was read when the count of changes was changes, unless it has changed since.
func (l *Limits) keep(limit string, set *Set, changes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changes != changes {
		return
	}
	if l.kept == nil || len(l.kept) >= maxKept {
		l.kept = map[string]*Set{}
	}
	l.kept[limit] = set.clone()
}

// Took notes that a write has taken slots.
func (l *Limits) Took(slots []Slot) { l.change(slots, (*Set).add) }

// GaveBack notes that a write has given slots back.
func (l *Limits) GaveBack(slots []Slot) {
	l.change(slots, func(s *Set, slot *Slot) { s.remove(slot.Number) })
}

func (l *Limits) change(slots []Slot, apply func(*Set, *Slot)) {
	if len(slots) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changes++
	for i := range slots {
		if set := l.kept[slots[i].Limit]; set != nil {
			apply(set, &slots[i])
		}
	}
}

// Forget drops what is kept, so that it is read again. It is for a write of which it is not known whether it was applied, or that a
// slot refused.
func (l *Limits) Forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changes++
	l.kept = nil
}

// reserve reserves the lowest slot that is neither taken nor reserved. read is the set of taken slots as the caller read it, used if
// the limit is not kept: then the slot may turn out to be taken.
func (l *Limits) reserve(limit string, most int, read *Set) (number int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if kept := l.kept[limit]; kept != nil {
		read = kept
	}
	reserved := l.reserved[limit]
	if number, ok = read.with(reserved).lowest(most); !ok {
		if reserved != nil {
			l.refused[limit] = true
		}
		return 0, false
	}
	if reserved == nil {
		reserved = &Set{}
		l.reserved[limit] = reserved
	}
	reserved.take(number)
	return number, true
}

// release ends reservations, and reports whether a caller found no free slot meanwhile.
func (l *Limits) release(slots []Slot) (refused bool) {
	if len(slots) == 0 {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range slots {
		limit := slots[i].Limit
		refused = refused || l.refused[limit]
		reserved := l.reserved[limit]
		if reserved.remove(slots[i].Number); reserved.Count() == 0 {
			delete(l.reserved, limit)
			delete(l.refused, limit)
		}
	}
	return refused
}
