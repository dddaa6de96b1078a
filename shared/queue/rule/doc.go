// Package rule keeps what operators say about waiting tasks: which jobs are paused or blocked, which queues are suspended, and for which
// instances the engine keeps tasks. All of it is one partition of the store, so that a claim reads it at once.
//
//	set.go   Set: the rules in force, and what they hold
//	book.go  Book: reads the rules, and changes them with their events
//
// The package imports definition, event, event/typed, groupcommit, journal, lock, queue/layout, store and the standard library.
package rule
