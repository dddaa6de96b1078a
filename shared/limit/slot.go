package limit

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/millrace/millrace/shared/store"
)

// Slot is one slot of a limit. As JSON it has only what [Slot.GiveBack] needs.
type Slot struct {
	Limit  string `json:"w"` // the name of the limit
	Number int    `json:"n"` // from 0
	Holder string `json:"-"` // who has taken it, without spaces
	Mark   string `json:"-"` // by which [Set.Marked] returns it; default: it does not
}

// Take returns the operation that takes the slot. Its condition fails if the slot is taken.
func (s *Slot) Take() store.Op {
	value := s.Holder
	if s.Mark != "" {
		value += " " + s.Mark
	}
	return store.Put(store.Item{Key: s.key(), Value: []byte(value)}, store.Absent)
}

// GiveBack returns the operation that gives the slot back. It has no condition: the slot is the holder's until then.
func (s *Slot) GiveBack() store.Op { return store.Delete(s.key(), store.Always) }

func (s *Slot) key() store.Key {
	return store.Key{Table: store.Work, Partition: partition(s.Limit), Sort: fmt.Sprintf("%08x", s.Number)}
}

func partition(limit string) string { return "permit/" + store.Fit(limit) }

// stored returns the slot that an item is.
func stored(limit string, item *store.Item) (Slot, error) {
	number, err := strconv.ParseUint(item.Key.Sort, 16, 31)
	if err != nil {
		return Slot{}, fmt.Errorf("limit: %v is no slot: %w", item.Key, err)
	}
	holder, mark, _ := strings.Cut(string(item.Value), " ")
	return Slot{Limit: limit, Number: int(number), Holder: holder, Mark: mark}, nil
}
