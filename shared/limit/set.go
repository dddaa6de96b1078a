package limit

import (
	"math/bits"
	"slices"
)

// Set is the set of taken slots of a limit: small numbers, since the lowest free slot is always taken next.
type Set struct {
	words  []uint64
	n      int
	marked []Slot
}

// Count returns how many slots are taken.
func (s *Set) Count() int { return s.n }

// Marked returns the taken slots that have a mark.
func (s *Set) Marked() []Slot { return s.marked }

func (s *Set) add(slot *Slot) {
	s.take(slot.Number)
	if slot.Mark != "" {
		s.marked = append(s.marked, *slot)
	}
}

func (s *Set) take(number int) {
	for len(s.words) <= number/64 {
		s.words = append(s.words, 0)
	}
	if word, bit := &s.words[number/64], uint64(1)<<(number%64); *word&bit == 0 {
		*word |= bit
		s.n++
	}
}

func (s *Set) remove(number int) {
	if number/64 >= len(s.words) {
		return
	}
	if word, bit := &s.words[number/64], uint64(1)<<(number%64); *word&bit != 0 {
		*word &^= bit
		s.n--
		s.marked = slices.DeleteFunc(s.marked, func(slot Slot) bool { return slot.Number == number })
	}
}

// Below returns how many of the first slots are taken, of so many.
func (s *Set) Below(most int) (n int) {
	for i, word := range s.words {
		if left := most - 64*i; left < 64 {
			word &= 1<<max(left, 0) - 1
		}
		n += bits.OnesCount64(word)
	}
	return n
}

// Free notes that slots are given back.
func (s *Set) Free(slots []Slot) {
	for i := range slots {
		s.remove(slots[i].Number)
	}
}

// lowest returns the first free slot below most; ok is false if as many as most are taken, or all below it.
func (s *Set) lowest(most int) (number int, ok bool) {
	if s.n >= most {
		return 0, false
	}
	for i, word := range s.words {
		if free := bits.TrailingZeros64(^word); free < 64 {
			return i*64 + free, i*64+free < most
		}
	}
	return len(s.words) * 64, len(s.words)*64 < most
}

// with returns the slots that are taken in either; other may be nil.
func (s *Set) with(other *Set) *Set {
	if other == nil {
		return s
	}
	all := s.clone()
	for i, word := range other.words {
		for ; word != 0; word &= word - 1 {
			all.take(i*64 + bits.TrailingZeros64(word))
		}
	}
	return all
}

func (s *Set) clone() *Set { return &Set{slices.Clone(s.words), s.n, slices.Clone(s.marked)} }
