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

// charge is what a request takes from a partition.
type charge struct {
	key   store.Key
	units float64
}

type charges []charge

// pay takes a request's units, all or none, and reports whether there were enough.
func (s *Store) pay(from map[owner]*bucket, bill charges, partition, table float64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	owed := map[owner]float64{}
	for _, c := range bill {
		owed[owner{c.key.Table, c.key.Partition}] += c.units
		owed[owner{table: c.key.Table}] += c.units
	}
	for o, units := range owed {
		if s.left(from, o, partition, table) < units {
			s.busy++
			return false
		}
	}
	for o, units := range owed {
		from[o].units -= units
	}
	return true
}

// left returns what an owner has left now.
func (s *Store) left(from map[owner]*bucket, o owner, partition, table float64) float64 {
	rate := partition
	if o.partition == "" {
		rate = table
	}
	now, most := time.Now(), rate*s.limits.Burst.Seconds()
	b := from[o]
	if b == nil {
		b = &bucket{units: most, at: now}
		from[o] = b
	}
	b.units = min(most, b.units+rate*now.Sub(b.at).Seconds())
	b.at = now
	return b.units
}
