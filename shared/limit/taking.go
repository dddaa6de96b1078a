package limit

import "context"

// Taking chooses free slots for one write after the other: of what it has read, and never the same twice. It is not for concurrent
// use.
type Taking struct {
	limits   *Limits
	read     map[string]*Set // by limit, with the slots that were chosen since
	reserved []Slot
}

// Begin returns a Taking that has read nothing.
func (l *Limits) Begin() Taking { return Taking{limits: l} }

// Wanted is a limit of which one slot is wanted. A slot that is reserved is not given to others until [Taking.Release].
type Wanted struct {
	Limit   string // its name
	Most    int    // how many slots it has
	Mark    string // see [Slot]
	Reserve bool   // reserve the slot; only for a process alone
}

// Reset forgets what was read. Reservations stay.
func (t *Taking) Reset() { t.read = nil }

// Know adds taken slots that the caller has read.
func (t *Taking) Know(limit string, set *Set) {
	if t.read == nil {
		t.read = map[string]*Set{}
	}
	t.read[limit] = set
}

// Read reads the taken slots of a limit, unless they are known. Errors are the store's.
func (t *Taking) Read(ctx context.Context, limit string) error {
	if t.read[limit] != nil {
		return nil
	}
	set, err := t.limits.Read(ctx, limit)
	if err == nil {
		t.Know(limit, set)
	}
	return err
}

// Take chooses the lowest free slot of each limit, all of which must be known; missing is the first limit that has none free, "" if
// there is none such. Limits of which slots are reserved come last.
func (t *Taking) Take(all ...Wanted) (slots []Slot, missing string) {
	slots = make([]Slot, 0, len(all))
	for i := range all {
		number, ok := t.free(&all[i])
		if !ok {
			return nil, all[i].Limit
		}
		slots = append(slots, Slot{Limit: all[i].Limit, Number: number, Mark: all[i].Mark})
	}
	for i := range slots {
		t.read[slots[i].Limit].take(slots[i].Number)
	}
	return slots, ""
}

func (t *Taking) free(w *Wanted) (number int, ok bool) {
	if !w.Reserve {
		return t.read[w.Limit].lowest(w.Most)
	}
	if number, ok = t.limits.reserve(w.Limit, w.Most, t.read[w.Limit]); ok {
		t.reserved = append(t.reserved, Slot{Limit: w.Limit, Number: number})
	}
	return number, ok
}

// Release ends the reservations, whether the slots were taken or not, and reports whether another Taking found no free slot meanwhile.
func (t *Taking) Release() (refused bool) {
	refused = t.limits.release(t.reserved)
	t.reserved = nil
	return refused
}
