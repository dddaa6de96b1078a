package cron

import "math/bits"

// set is a set of small numbers: a field's values less the least value.
type set [3]uint64

func (s *set) add(n int)      { s[n/64] |= 1 << (n % 64) }
func (s *set) has(n int) bool { return s[n/64]>>(n%64)&1 != 0 }

// above returns the least member that is at least n, or -1.
func (s *set) above(n int) int {
	for i := n / 64; i < len(s); i++ {
		if word := s[i] &^ below(n-64*i); word != 0 {
			return 64*i + bits.TrailingZeros64(word)
		}
	}
	return -1
}

// beneath returns the greatest member that is at most n, or -1.
func (s *set) beneath(n int) int {
	for i := n / 64; i >= 0; i-- {
		if word := s[i] & below(n+1-64*i); word != 0 {
			return 64*i + 63 - bits.LeadingZeros64(word)
		}
	}
	return -1
}

// below returns a mask of the bits lower than n.
func below(n int) uint64 {
	switch {
	case n <= 0:
		return 0
	case n >= 64:
		return ^uint64(0)
	default:
		return 1<<n - 1
	}
}

// least returns the least member of a word that is at least n, or -1.
func least(word uint64, n int) int {
	if word &^= below(n); word != 0 {
		return bits.TrailingZeros64(word)
	}
	return -1
}

// greatest returns the greatest member of a word that is at most n, or -1.
func greatest(word uint64, n int) int {
	if word &= below(n + 1); word != 0 {
		return 63 - bits.LeadingZeros64(word)
	}
	return -1
}
