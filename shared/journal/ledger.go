package journal

import (
	"encoding/json"
	"sort"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/store"
)

// ledger counts the events of the prefix that a view has folded, so that retention by number finds its slot without
// reading the journal again.
type ledger struct {
	position int64    // the newest slot counted
	last     event.ID // its last id
	events   int64    // since the journal's beginning
	bytes    int64    // of them
	marks    []mark   // rising by position
}

// mark notes how many events there were up to a slot, and its last id, so that the floor can be moved there.
type mark struct {
	Position int64    `json:"p"`
	Events   int64    `json:"n"`
	Last     event.ID `json:"l"`
}

// maxMarks bounds the marks of a ledger: retention is exact to 1/(maxMarks/2) of the slots that it keeps.
const maxMarks = 1024

func (l *ledger) count(s *slot) {
	l.position, l.last = s.position, s.last
	l.events += int64(len(s.events))
	for i := range s.events {
		l.bytes += int64(s.events[i].Size())
	}
	if n := len(l.marks); n == 0 || s.position-l.marks[n-1].Position >= l.spacing() {
		l.marks = append(l.marks, mark{s.position, l.events, s.last})
	}
	if len(l.marks) >= maxMarks {
		l.thin()
	}
}

func (l *ledger) spacing() int64 {
	n := len(l.marks)
	return max(1, (l.marks[n-1].Position-l.marks[0].Position)/(maxMarks/2))
}

// thin drops every other mark. What is kept is a copy, since a manifest may hold the slice.
func (l *ledger) thin() {
	var kept []mark
	for i := 0; i < len(l.marks); i += 2 {
		kept = append(kept, l.marks[i])
	}
	l.marks = kept
}

// forget drops the marks that lie below a floor.
func (l *ledger) forget(floor int64) {
	for len(l.marks) > 0 && l.marks[0].Position < floor {
		l.marks = l.marks[1:]
	}
}

// evictable returns the newest mark, at or below goal, that retention does not keep; zero if there is none.
func (l *ledger) evictable(keep Retention, tooOld event.ID, goal int64) mark {
	var found mark
	for _, m := range l.marks {
		if m.Position > goal || m.Events > l.events-keep.Events && m.Last >= tooOld {
			break
		}
		found = m
	}
	return found
}

// upTo returns how many events there were up to the newest mark that is not above a bound, or the oldest mark if all are.
func (l *ledger) upTo(above func(mark) bool) int64 {
	if len(l.marks) == 0 {
		return l.events
	}
	n := sort.Search(len(l.marks), func(i int) bool { return above(l.marks[i]) })
	return l.marks[max(0, n-1)].Events
}

// eventsTo returns how many events there were up to an id, about.
func (l *ledger) eventsTo(id event.ID) int64 {
	return l.upTo(func(m mark) bool { return m.Last > id })
}

// eventsAt returns how many events there were up to a position, about.
func (l *ledger) eventsAt(position int64) int64 {
	return l.upTo(func(m mark) bool { return m.Position > position })
}

type ledgerJSON struct {
	Position int64    `json:"position"`
	Last     event.ID `json:"last"`
	Events   int64    `json:"events"`
	Bytes    int64    `json:"bytes"`
	Marks    []mark   `json:"marks"`
}

// MarshalJSON returns a ledger as the manifest holds it.
func (l ledger) MarshalJSON() ([]byte, error) {
	return json.Marshal(ledgerJSON{l.position, l.last, l.events, l.bytes, l.marks})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (l *ledger) UnmarshalJSON(data []byte) error {
	var in ledgerJSON
	if err := store.Decode(data, &in); err != nil {
		return err
	}
	*l = ledger{in.Position, in.Last, in.Events, in.Bytes, in.Marks}
	return nil
}
