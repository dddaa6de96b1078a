// Package overview makes of events what snapshots show: one fold for each kind of object of seed 000. A further kind of
// snapshot is a further fold in [Folds].
//
// It does no I/O; it imports event, and journal for the type of a fold.
package overview

import "github.com/millrace/millrace/shared/journal"

// Folds are the folds of all kinds of objects. Each bears the name of the type that its elements have, such as
// "ObjectOverview"; the elements are JSON objects.
func Folds() []journal.Fold {
	return []journal.Fold{Objects(), Orders(), Jobs(), JobChains(), Tasks(), TaskCounts(), Work(), FileBased()}
}

// Unmade names the folds of objects that nothing in this program makes yet, so that a server has no overview of them.
func Unmade() []string { return []string{"OrderOverview", "JobChainOverview"} }
