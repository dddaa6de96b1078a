package web

import (
	"maps"
	"slices"
)

// Patterns returns what the dashboard serves, by the mux's patterns.
func Patterns() []string { return slices.Sorted(maps.Keys(new(Dashboard).routes())) }
