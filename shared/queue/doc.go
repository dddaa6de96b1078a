// Package queue stores tasks and gives them to claimers: enqueue, claim, lease, complete, retry, delay, rules, limits,
// fairness, logs, listing, and why a task is not running.
//
// Each event of a task is written by one [journal.Journal.Write] together with the task's item. An unfinished task has one
// entry in an index beside its item: ready, due or held; while it runs, its item holds its lease instead. An entry counts only while the
// task is queued and has the version that the entry was made for, so that nothing needs repair after a crash. A task that is
// kept for a preferred instance has two entries.
//
// What is stored is told by package layout, what operators say about waiting tasks is kept by package rule, logs by package tasklog, and
// what can be read of tasks is package view, which a Queue embeds.
//
// The files, in reading order:
//
//	queue.go      options, Open, reading a task
//	request.go    what callers pass and get
//	error.go      errors
//
//	enqueue.go    Enqueue, and the events of new tasks
//	chunk.go      one Enqueue as several writes
//	addition.go   one Enqueue as part of a write
//	once.go       idempotency keys of Enqueue
//	size.go       limits of payloads, texts and writes
//	dialect.go    sync tasks, and the groups that they are listed under
//	combine.go    many changes in one write to the journal
//	cause.go      what brings the events of tasks about
//	rank.go       the order of a ready index (package fair: turns of a round-robin queue)
//
//	claim.go      Claim: which queues, and its rounds: pick, judge, start, tidy
//	ordered.go    the pick of an ordered queue
//	judge.go      which picks start
//	start.go      the write that starts them
//	tidy.go       what becomes of the other picks
//	early.go      what a claim of an instance decides by, read at once
//	claimnext.go  CompleteAndClaim
//	crowd.go      claims of one process on a queue as one, where processes share the store
//	turnover.go   ends of an instance's attempts and starts in their place, in one write
//	handover.go   new tasks that are started for an instance that waits, in the write that adds them
//	beside.go     an item of the caller's in the same write
//	claimer.go    which lines a claimer takes from (package directory knows which there are)
//	limit.go      the limits of a task, and the slots that its start takes
//	capacity.go   the capacity of an instance
//	together.go   claims of one instance, one after the other
//	repeat.go     claims with an idempotency key
//	prefer.go     tasks that prefer an instance
//
//	strategy.go       what a process knows of the store: two ways behind one interface
//	alone.go          of a process that has the store to itself: all in memory, and exact
//	alone_window.go   its head of each ready index
//	alone_due.go      when its entries fall due
//	shared.go         of one process of many: read, mark, claim
//	shared_ahead.go   its reading past what cannot start
//	shared_parts.go   its reading of lines in several parts
//	shared_together.go the picks of its claims made as one
//	shared_chosen.go  what its claims have picked and not started yet
//	shared_mark.go    its marks for other claimers
//	shared_added.go   what it need not read of tasks that it has added
//	shared_reserve.go its reading ahead of its share of a line
//	parts.go          lines to which much is added lie in several partitions
//	shares.go         sharing the parts of such a line out among processes
//	lately.go         what its next claims need not read again
//
//	lease.go      leases, tokens, heartbeats
//	complete.go   Complete: how an attempt ends
//	completeall.go CompleteAll: many ends in few writes
//	held.go       what an instance holds
//	stop.go       Stop, Retry, the end of a queued task
//	remove.go     Remove
//	withdraw.go   Withdraw
//	purge.go      Purge, and changes of many tasks in one write
//	instance.go   results that came too late
//
//	rule.go       what a change of a rule, or of a suspended queue, releases (package rule)
//	hold.go       entries that a rule or a limit holds
//	home.go       entries whose job others run now
//	move.go       moving entries between indexes
//	batch.go      many independent operations in one write to the store
//	due.go        entries that fall due
//	late.go       ticks that take the unique key of their job as they fall due
//	alarm.go      when this process looks at due entries and leases
//	wait.go       instances that wait for tasks
//	expect.go     the wait that follows the end of a task, before it begins
//	calls.go      which lines a process was told of
//	looks.go      what became of the wakes of an instance without a free slot
//	broadcast.go  waking the instances that wait in other processes
//	sweep.go      Sweep and Run
//	sweepleases.go  leases that have run out
//	measures.go  what looks have seen: the oldest wait, what is late, lost leases
//	history.go    finished tasks that are removed after their time
//
//	follow.go     steps of orders: what their ends bring about, and changes of orders with their tasks
//
//	busy.go       repeats calls of a busy store
//
// The package imports beside, notifier, clock, definition, event, event/typed, groupcommit, journal, limit, lock, projection,
// queue/directory, queue/fair, queue/layout, queue/rule, queue/tasklog, queue/view, rate, store, task and the standard library.
package queue
