// Package layout says how tasks lie in the store: the items of the table work, their keys, and what they hold. The engine (package
// queue) writes them, and what only reads tasks (package view) needs no more than this package.
//
// An unfinished task has one entry in an index beside its item: ready, due or held. An entry counts only while the task is queued and
// has the version that the entry was made for.
//
//	keys.go   the items and their keys
//	item.go   reading and writing the values of items, tasks, payloads
//	compact.go, fields.go  the compact form of what is written often, and its fields
//	json.go   JSON: items for people to read
//	parts.go  tasks and lines that lie in several partitions
//	line.go   Line: the name of a ready index
//	entry.go  Entry, Place: entries of indexes, and reading an index
//	lease.go  Lease, Held: the right to run a task, and its token; Started: a task with its lease
//	topic.go  groups of topics; what is kept of a finished task
//	limit.go  the names of limits
//	size.go   how much goes in one write
//	error.go  errors of reading
//
// The package imports definition, journal, limit, notifier, projection, store, task and the standard library.
package layout
