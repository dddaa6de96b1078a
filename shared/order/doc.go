// Package order moves orders along the nodes of job chains, as in JobScheduler: adding them, the ends of their steps, and what
// operators do with them.
//
// An order is one item. Its step at a node is a task of package queue, which calls [Engine.Ended] at the step's end: the task's end,
// the order's change with its events, and the next step's task are one write. So an order is at one node, in one step, whatever
// fails.
//
// The files, in reading order:
//
//	engine.go     options, Open, errors
//	item.go       the items and their keys
//	version.go    versions of chains
//	tidy.go       removing versions that nobody is on
//	variables.go  variables: what they may be, and their changes
//
//	add.go        Add
//	once.go       the idempotency keys of requests
//	move.go       one change of an order: going to a node, what happens there, the end
//	book.go       what one write keeps for all orders in it
//	decide.go     what the end of a step means
//	step.go       the end of a step
//	then.go       what waits for the end of a running step; withdrawing a step that waits
//	act.go        what operators do with an order
//	moveto.go     moving an order to another version of its chain
//	chain.go      what operators set for a chain: stopping it, actions of its nodes
//	walk.go       all orders of a chain, some at a time
//	place.go      max_orders: places, and the line of those that wait for one
//	prompt.go     questions to persons, and their answers
//	lock.go       locks, and the lines of those that wait for them
//	handon.go     handing a lock on to the first in line
//	wait.go       waits for a time, or for an event
//	expand.go     what ${NAME} means in a wait
//	shape.go      what waits for events have in common
//	match.go      finding the orders that waited for events
//	found.go      orders that cannot go on though their events were found
//	ear.go        waking those who look, in processes that do not
//	due.go        alarms
//	permanent.go  orders of schedules, which go back to their first node
//	file.go       orders of files, which finish when their files have been put away
//	timeout.go    timeouts of chains
//	errand.go     alarms that say what is to be done, mostly about a fork
//	fork.go       forks: waiting for children, and going on
//	children.go   making children, and ending those that are left
//	join.go       counting the ends of children
//	together.go   one write of several orders
//	mend.go       what is left behind
//	bulk.go       an act on many orders or jobs: what is stored of it; showing, stopping and resuming it
//	bulkselect.go what filters select
//	bulkonce.go   beginning it, once for an idempotency key
//	bulkrun.go    doing it, batch by batch
//	bulkjobs.go   the acts on jobs
//	sweep.go      Run and Sweep: what is due
//	inline.go     what is due at once, in processes without Run
//	overview.go   an order as clients see it
//	reason.go     why its step is not running
//
// The package imports clock, definition, event, event/typed, journal, notifier, projection, queue, queue/view, store, task,
// task/failure and the standard library.
package order
