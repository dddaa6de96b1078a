package main

import (
	"cmp"
	"slices"
	"sort"
)

// span is a stretch of time in microseconds since 1970, from its beginning to before its end.
type span struct{ from, to int64 }

// spans are in order and do not touch.
type spans []span

// union returns the time that any of the spans covers, which may come in any order.
func union(all ...spans) spans {
	joined := slices.Concat(all...)
	slices.SortFunc(joined, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	var merged spans
	for _, s := range joined {
		if last := len(merged) - 1; last >= 0 && s.from <= merged[last].to {
			merged[last].to = max(merged[last].to, s.to)
			continue
		}
		merged = append(merged, s)
	}
	return merged
}

// without returns the time of s that the others do not cover.
func (s spans) without(others spans) spans {
	var left spans
	for _, one := range s {
		for _, o := range others {
			if o.to <= one.from || o.from >= one.to {
				continue
			}
			if o.from > one.from {
				left = append(left, span{one.from, o.from})
			}
			one.from = o.to
		}
		if one.from < one.to {
			left = append(left, one)
		}
	}
	return left
}

// covered returns how much of the time from one moment to another the spans cover.
func (s spans) covered(from, to int64) int64 {
	sum := int64(0)
	first := sort.Search(len(s), func(i int) bool { return s[i].to > from })
	for _, one := range s[first:] {
		if one.from >= to {
			break
		}
		sum += min(one.to, to) - max(one.from, from)
	}
	return sum
}

// meets reports whether any of the spans has some of the time from one moment to another.
func (s spans) meets(from, to int64) bool { return s.covered(from, to) > 0 }

// change is a step of a number up or down.
type change struct {
	at int64
	by int
}

// atLeast returns when the sum of the changes is at least that much, until the end.
func atLeast(changes []change, much int, end int64) spans {
	slices.SortStableFunc(changes, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	var found spans
	sum, since := 0, int64(-1)
	for _, c := range changes {
		sum += c.by
		switch {
		case sum >= much && since < 0:
			since = c.at
		case sum < much && since >= 0:
			found = append(found, span{since, c.at})
			since = -1
		}
	}
	if since >= 0 {
		found = append(found, span{since, end})
	}
	return union(found)
}

// nowhere returns when none of the others has any time, between two moments.
func nowhere(all []spans, from, to int64) spans {
	return spans{{from, to}}.without(union(all...))
}
