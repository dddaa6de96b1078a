// Command soak runs everything at once for a while, breaks it all the time, and then checks what came of it.
//
//	soak -millrace bin/millrace-faults -for 1h
//
// The server, a process of its own on an embedded store, is killed with signal 9 and started again each minute, and so are the
// workers. Its store turns calls away, loses connections and is slow now and then. Meanwhile clients emit events under
// idempotency keys, ask for the three kinds of tasks with priorities, delays, unique keys and limits, append to streams and consume
// them; schedules fire each second; handlers are paused, queues and schedules suspended, jobs stopped and removed; followers read along;
// and requests are made that must be refused.
//
// At the end it compares what each client was told with what the journal says. It prints what it found, leaves a summary as JSON,
// and ends with status 1 if anything was lost, doubled, invented, late beyond what rules and outages explain, or growing.
//
// With several servers (-servers 3) they share a store that is a process of its own and is killed too; calls and responses get lost
// between them, and some are repeated. The first server is not killed, so that growth over its life shows.
//
// The first table has a row for each life of the server: tasks that ended and events that were acknowledged, a second; the most memory
// that servers had resident, of their heaps in use, and goroutines; calls of the store for each task that ended, whatever they were
// for; processor time of the servers, a second. GROWTH is that of a straight line through these rows but the first sixth of them, from
// its first to its last, with its standard error. STARTED LATE is how long tasks that were ready, by their time or the delay
// before their next attempt, waited for a start, less the time in which the server was away, no process that runs such tasks had a
// free slot, an operator held them, or as many ran as may at once (the time counts from when a place was free); and when the worst of
// them was started. ENDED LATE is how much longer attempts took than their work and their lease.
//
//	main.go         one run, from its start to its result
//	plan.go         how long, how much, how often
//	definitions.go  what the server is configured with, and what follows for each job
//	cast.go         the processes, and when they were away
//	servers.go      servers, and the balancer before several
//	children.go     workers, and the store that several servers share
//	worker.go       what a worker process does
//	receiver.go     the target of tasks by HTTP, which is also told what workers run
//	load.go         clients that ask for tasks
//	acts.go         pauses, suspensions, stops, and what must be refused
//	events.go       clients that emit, and followers
//	streams.go      producers and consumers
//	ledger.go       what was acknowledged, and what the journal says
//	ticks.go        one task for each time of a schedule
//	spans.go        arithmetic of stretches of time
//	lateness.go     how late tasks started, less what explains it
//	growth.go       memory and calls of the store over time
//	reckoning.go    what was wrong
//	report.go       what is printed
package main
