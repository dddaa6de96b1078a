// Package projection holds the projections of the journal: what snapshots and statistics are computed from, one fold of
// events for each kind of object of JobScheduler's event API, and some of Millrace's own. [Folds] lists them all.
//
//	builtin.go     definitions
//	job.go         jobs
//	chain.go       job chains
//	order.go       orders as clients see them
//	orderfold.go   orders by their events
//	orderstep.go   what each event does to an order
//	orderstate.go  what is kept of an order
//	ordershow.go   what is shown of an order
//	ordercount.go  statistics of orders, by chain
//	tasks.go       tasks
//	counts.go      numbers of tasks by state
//	work.go        what has become of jobs' tasks
//	objects.go     objects of custom events
//
// It does no I/O. It imports event, event/typed, journal (for the type of a fold), task and a JSON tokenizer.
package projection

import "github.com/millrace/millrace/shared/journal"

// Folds returns all projections. Those of objects have the name of their elements' type, such as "ObjectOverview", and
// their elements are JSON objects; [TaskCounts] and [Work] hold numbers.
func Folds() []journal.Fold {
	return []journal.Fold{Objects(), Orders(), Jobs(), JobChains(), Tasks(), TaskCounts(), Work(), FileBased()}
}

// Unmade returns the names of the projections whose objects nothing in this program creates yet, so that a server cannot
// show them: there are none.
func Unmade() []string { return nil }
