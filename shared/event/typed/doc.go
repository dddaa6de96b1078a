// Package typed has a Go type for each event that Millrace writes with fields: tasks, jobs' states, orders, ticks of schedules, appends
// to streams. Each type's method Event returns the event for the journal; its fields have always the same order, names and form,
// since followers and stored journals depend on them. What the program reads back has a function Read, which ignores fields that
// it does not know, and leaves out those of a wrong type.
//
//	task.go      tasks
//	outcome.go   how attempts of tasks end
//	job.go       jobs
//	order.go     orders and job chains
//	schedule.go  schedules
//	scheduler.go servers
//	stream.go    streams
//	fields.go    values of fields
//
// It does no I/O. It imports event, task and a JSON tokenizer.
package typed
