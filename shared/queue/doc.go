// Package queue is the engine that keeps tasks and hands them out: enqueue, claim, lease, complete, retry, delay, rules,
// limits, fairness, logs, listing, and why a task is not running.
//
// Every change of a task is one [journal.Journal.Write] together with its event. Beside its item, an unfinished task has
// exactly one entry in an index: ready, due, held or leased; which one is decided by that entry's own condition, so that
// nothing needs repair after a crash. While it is kept for an instance that it prefers, it has two.
//
// It imports bell, clock, definition, event, journal, store and task.
package queue
