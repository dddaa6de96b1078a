package limited

// Usage is what a store has given and refused since it was opened.
type Usage struct {
	Calls      int     // requests that were served
	WriteUnits float64 // those that were paid for
	ReadUnits  float64
	Throttled  int // requests that found too few units left
	Conflicts  int // writes that met a transaction under way
}

// Minus returns what was used since an earlier moment.
func (u Usage) Minus(earlier Usage) Usage {
	return Usage{
		Calls: u.Calls - earlier.Calls, WriteUnits: u.WriteUnits - earlier.WriteUnits, ReadUnits: u.ReadUnits - earlier.ReadUnits,
		Throttled: u.Throttled - earlier.Throttled, Conflicts: u.Conflicts - earlier.Conflicts,
	}
}

// Usage returns what was used until now.
func (s *Store) Usage() Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.usage
}

// TurnedAway returns how many requests were throttled.
func (s *Store) TurnedAway() int { return s.Usage().Throttled }
