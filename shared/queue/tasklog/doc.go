// Package tasklog keeps the logs of tasks: lines, gathered in chunks, each chunk an item of the task's log. A worker's heartbeat appends
// lines with its lease's item; the package makes the operations, and the engine (package queue) writes them.
//
//	tasklog.go  lines, appending and reading them
//
// The package imports event, queue/layout, store, task and the standard library.
package tasklog
