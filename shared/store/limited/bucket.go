package limited

import (
	"time"

	"github.com/millrace/millrace/shared/store"
)

// bucket holds the units that an owner has left.
type bucket struct {
	units float64
	at    time.Time
}

// owner names what units are counted for: a partition key, or a whole table if partition is empty.
type owner struct {
	table     store.Table
	partition string
}

// charge is what a request takes from a partition.
type charge struct {
	key   store.Key
	units float64
}

type charges []charge

// kind is one of the two kinds of units, with its limits.
type kind struct {
	partition, table float64 // units a second
	buckets          map[owner]*bucket
	spent            *float64
}

// pay takes a request's units, all or none, and reports whether there were enough.
func (s *Store) pay(from *kind, bill charges) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	owed, total := map[owner]float64{}, 0.0
	for _, c := range bill {
		owed[owner{c.key.Table, c.key.Partition}] += c.units
		owed[owner{table: c.key.Table}] += c.units
		total += c.units
	}
	for o, units := range owed {
		if s.left(from, o) < units {
			s.usage.Throttled++
			return false
		}
	}
	for o, units := range owed {
		from.buckets[o].units -= units
	}
	*from.spent += total
	s.usage.Calls++
	return true
}

// left returns what an owner has left now.
func (s *Store) left(from *kind, o owner) float64 {
	rate := from.partition
	if o.partition == "" {
		rate = from.table
	}
	now, most := time.Now(), rate*s.limits.Burst.Seconds()
	b := from.buckets[o]
	if b == nil {
		b = &bucket{units: most, at: now}
		if s.limits.Cold && o.partition != "" {
			b.units = min(most, rate/10)
		}
		from.buckets[o] = b
	}
	b.units = min(most, b.units+rate*now.Sub(b.at).Seconds())
	b.at = now
	return b.units
}
