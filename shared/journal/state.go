package journal

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"
)

// State is what a fold has made of the events so far: values by key, kept as a packed table and the changes since it was
// packed. Keys are of any length; values should be small.
type State struct {
	packed  table
	changed map[string]change
	keys    int

	replaced int // bytes of the table's blocks that have had to make room for others, ever

	at      int64            // the position of the slot that is being folded; 0: changed keys are not remembered
	touched map[string]int64 // the keys that were changed, and the position of the last change
}

// change is a key's state since the table was packed.
type change struct {
	key    string
	value  []byte
	gone   bool // it was deleted
	packed bool // the table has the key
}

func (c *change) record() record { return record{[]byte(c.key), c.value} }

// Changes are packed when there are more than unpacked, and more than one for each keysPerChange keys.
const (
	unpacked      = 1024
	keysPerChange = 16
)

// Get returns the value of a key, nil if there is none. The value must not be changed.
func (s *State) Get(key string) []byte {
	value, _ := s.find(key)
	return value
}

func (s *State) find(key string) (value []byte, there bool) {
	if c, known := s.changed[key]; known {
		return c.value, !c.gone
	}
	return s.packed.get(key)
}

// Put sets the value of a key. The state keeps both; the value must not be changed afterwards.
func (s *State) Put(key string, value []byte) {
	c := s.change(key)
	if c.gone {
		s.keys++
	}
	c.value, c.gone = value, false
	s.touch(key)
	s.note(c)
}

// Delete removes a key, if it is there.
func (s *State) Delete(key string) {
	c := s.change(key)
	if c.gone {
		return
	}
	s.keys--
	key = strings.Clone(key)
	s.touch(key)
	if !c.packed {
		delete(s.changed, key)
		return
	}
	c.key, c.value, c.gone = key, nil, true
	s.note(c)
}

func (s *State) touch(key string) {
	if s.at == 0 {
		return
	}
	if s.touched == nil {
		s.touched = map[string]int64{}
	}
	s.touched[key] = s.at
}

// trim forgets which keys were changed up to a position.
func (s *State) trim(position int64) {
	maps.DeleteFunc(s.touched, func(_ string, at int64) bool { return at <= position })
	if len(s.touched) == 0 {
		s.touched = nil // a map keeps the memory of deleted keys
	}
}

// All returns the keys and their values, in the order of the keys. A value must not be changed.
func (s *State) All() iter.Seq2[string, []byte] { return s.from("") }

// from is All from a key on; the key need not be there.
func (s *State) from(key string) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		changes := s.changes()
		at, _ := slices.BinarySearchFunc(changes, key, func(c change, key string) int { return cmp.Compare(c.key, key) })
		for r := range s.packed.from(key).all(changes[at:]) {
			if string(r.key) >= key && !yield(string(r.key), r.value) {
				return
			}
		}
	}
}

// Len returns the number of keys.
func (s *State) Len() int { return s.keys }

// change returns the change of a key, or a new one; a key that is not there is gone.
func (s *State) change(key string) change {
	if c, known := s.changed[key]; known {
		return c
	}
	_, packed := s.packed.get(key)
	return change{key: key, gone: !packed, packed: packed}
}

func (s *State) note(c change) {
	if s.changed == nil {
		s.changed = map[string]change{}
	}
	s.changed[c.key] = c
	if len(s.changed) > max(unpacked, s.keys/keysPerChange) {
		s.pack()
	}
}

// pack moves the changes into the table.
func (s *State) pack() {
	if len(s.changed) == 0 {
		return
	}
	packed, fresh := s.packed.with(s.changes())
	s.replaced += s.packed.size() - (packed.size() - fresh)
	s.packed, s.changed = packed, nil
}

// changes returns what has changed, in the order of the keys.
func (s *State) changes() []change {
	changes := make([]change, 0, len(s.changed))
	for _, c := range s.changed {
		changes = append(changes, c)
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Compare(a.key, b.key) })
	return changes
}

// frozen returns a copy of the state, which later changes do not affect.
func (s *State) frozen() State {
	return State{packed: s.packed, changed: maps.Clone(s.changed), keys: s.keys, replaced: s.replaced}
}
