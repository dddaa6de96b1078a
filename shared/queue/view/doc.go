// Package view reads tasks and changes nothing: a task, its log, lists, counts, statistics, and why a task is not running. It
// needs what is stored (package layout), the rules and limits in force, and the projections of the journal; the engine (package
// queue) embeds it.
//
//	view.go        Tasks: one task, its log and its progress; what instances run; the rules in force
//	reason.go      why a task is not running
//	behind.go      and why one is not that could
//	list.go        tasks of a group
//	jobs.go        tasks of topics
//	counts.go      how many tasks of each state there are
//	statistics.go  counters and averages of jobs and queues
//
// The package imports definition, event, journal, limit, projection, queue/layout, queue/rule, queue/tasklog, store, task and the
// standard library.
package view
