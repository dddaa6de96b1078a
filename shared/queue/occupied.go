package queue

import (
	"math/bits"
	"slices"
	"strconv"

	"github.com/millrace/millrace/shared/store"
)

// occupied is the set of taken slots of a limit: small numbers, since the lowest free slot is always taken next.
type occupied struct {
	words []uint64
	n     int
	keyed []keyedPlace // those taken by claims with an idempotency key
}

// count returns how many slots are taken.
func (o *occupied) count() int { return o.n }

// with returns the slots that are taken in either; other may be nil.
func (o *occupied) with(other *occupied) *occupied {
	if other == nil {
		return o
	}
	all := o.clone()
	for i, word := range other.words {
		for ; word != 0; word &= word - 1 {
			all.take(i*64 + bits.TrailingZeros64(word))
		}
	}
	return all
}

func (o *occupied) clone() *occupied {
	return &occupied{slices.Clone(o.words), o.n, slices.Clone(o.keyed)}
}

// lowest returns the first free slot below limit; ok is false if as many as limit are taken, or all below it.
func (o *occupied) lowest(limit int) (number int, ok bool) {
	if o.n >= limit {
		return 0, false
	}
	for i, word := range o.words {
		if free := bits.TrailingZeros64(^word); free < 64 {
			return i*64 + free, i*64+free < limit
		}
	}
	return len(o.words) * 64, len(o.words)*64 < limit
}

func (o *occupied) take(number int) {
	for len(o.words) <= number/64 {
		o.words = append(o.words, 0)
	}
	if word, bit := &o.words[number/64], uint64(1)<<(number%64); *word&bit == 0 {
		*word |= bit
		o.n++
	}
}

func (o *occupied) giveBack(number int) {
	if number/64 >= len(o.words) {
		return
	}
	if word, bit := &o.words[number/64], uint64(1)<<(number%64); *word&bit != 0 {
		*word &^= bit
		o.n--
		o.keyed = slices.DeleteFunc(o.keyed, func(k keyedPlace) bool { return k.number == number })
	}
}

// placeNumber returns the number of a slot from its item's key.
func placeNumber(key store.Key) (int, error) {
	n, err := strconv.ParseUint(key.Sort, 16, 31)
	return int(n), err
}
