// Package bench measures the journal, tasks, streams and claims of a program, for the command millrace bench: in this process, in
// a process of its own on the loopback interface, or a server elsewhere. Beside each rate stands what the disk, or the HTTP stack,
// could do in the same seconds.
//
//	bench.go    measurements, and the programs and stores that they measure
//	append.go   appends to the journal
//	read.go     reading the journal from its beginning
//	follow.go   how soon a follower has an event
//	tasks.go, taskshttp.go   tasks per second, and how soon they start
//	claims.go   remote workers that claim and end tasks
//	idle.go     workers that wait
//	pages.go    pages of the dashboard, with much in the store
//	growth.go   what a store takes, under a steady load
//	streams.go  appends to a stream, and reading it
//	cloud.go, cloudtasks.go, cloudappend.go, cloudline.go   many processes on DynamoDB's limits, in virtual time
//	virtual.go  virtual time outside of tests
//	hammer.go   many callers at once, and how long their calls take
//	disk.go, sync_linux.go, sync_other.go   what the disk alone can do
//	subject.go  a journal in this process or behind HTTP
//	child.go    a server in a process of its own
//	results.go  rows of figures
//
// It imports client, config, definition, event, host, journal, notifier, notifier/local, order, queue, service, store,
// store/limited, store/memory, store/postgres, stream, task and worker.
package bench
