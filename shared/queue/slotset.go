package queue

import (
	"math/bits"
	"slices"
	"strconv"

	"github.com/millrace/millrace/shared/store"
)

// slotSet is the set of taken slots of a limit: small numbers, since the lowest free slot is always taken next.
type slotSet struct {
	words []uint64
	n     int
	keyed []keyedSlot // those taken by claims with an idempotency key
}

// count returns how many slots are taken.
func (s *slotSet) count() int { return s.n }

// with returns the slots that are taken in either; other may be nil.
func (s *slotSet) with(other *slotSet) *slotSet {
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

func (s *slotSet) clone() *slotSet {
	return &slotSet{slices.Clone(s.words), s.n, slices.Clone(s.keyed)}
}

// lowest returns the first free slot below limit; ok is false if as many as limit are taken, or all below it.
func (s *slotSet) lowest(limit int) (number int, ok bool) {
	if s.n >= limit {
		return 0, false
	}
	for i, word := range s.words {
		if free := bits.TrailingZeros64(^word); free < 64 {
			return i*64 + free, i*64+free < limit
		}
	}
	return len(s.words) * 64, len(s.words)*64 < limit
}

func (s *slotSet) take(number int) {
	for len(s.words) <= number/64 {
		s.words = append(s.words, 0)
	}
	if word, bit := &s.words[number/64], uint64(1)<<(number%64); *word&bit == 0 {
		*word |= bit
		s.n++
	}
}

func (s *slotSet) giveBack(number int) {
	if number/64 >= len(s.words) {
		return
	}
	if word, bit := &s.words[number/64], uint64(1)<<(number%64); *word&bit != 0 {
		*word &^= bit
		s.n--
		s.keyed = slices.DeleteFunc(s.keyed, func(k keyedSlot) bool { return k.number == number })
	}
}

// slotNumber returns the number of a slot from its item's key.
func slotNumber(key store.Key) (int, error) {
	n, err := strconv.ParseUint(key.Sort, 16, 31)
	return int(n), err
}
