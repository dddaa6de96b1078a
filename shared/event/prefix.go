package event

import (
	"slices"
	"strings"
)

// Prefixes returns what the keys of a family's objects begin with that the query may select: sorted, and none begins with
// another. Other keys need not be looked at; of those that begin so, MatchKey says which it selects. nil: any key.
func (q PathQuery) Prefixes(family Family) []string {
	if q.all || family == FileBasedEvent { // whose keys begin with the type
		return nil
	}
	var all []string
	for path, r := range q.reaches {
		prefix := "/" + path
		if family == OrderEvent && r == itself && !strings.Contains(path, ",") { // a chain, whose orders' keys go on with their ids
			prefix += ","
		}
		all = append(all, prefix)
		if family == CustomEvent { // whose keys need no slash
			all = append(all, prefix[1:])
		}
	}
	slices.Sort(all)
	shortest := all[:0]
	for _, prefix := range all {
		if n := len(shortest); n == 0 || !strings.HasPrefix(prefix, shortest[n-1]) {
			shortest = append(shortest, prefix)
		}
	}
	return shortest
}

// NamesOrder reports whether one of the query's paths is that of an order, "/CHAIN,ORDER", and not that of a chain or a folder.
func (q PathQuery) NamesOrder() bool {
	for path, r := range q.reaches {
		if r&itself != 0 && strings.Contains(path, ",") {
			return true
		}
	}
	return false
}
