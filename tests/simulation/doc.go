// Package simulation runs the real journal, streams, schedules and task engine in virtual time against a store behind a bad
// network, and checks the invariants of docs/invariants.md.
//
// A run is determined by its seed: some processes, each with a journal and a clock of its own; writers (plain, idempotent and
// transactional), followers, readers of the newest events, takers of snapshots and sweepers in them; and the faults of package
// faulty, in a different mixture for each seed. Two runs of one seed are identical. What each call returned is compared with
// what was committed, which an audit between the network and the store records. A report begins with the name of the invariant:
//
//	rising ids           ids strictly rise with their positions
//	complete followers   a follower sees exactly the journal after its start, whatever its limits and filters
//	acknowledged once    what was acknowledged is there exactly once, and a read that begins later sees it; a slot is written once
//	refused is absent    what was definitely refused is absent, with everything else of that write; an item is the fold of its events
//	nothing later        no id at or below a returned lastEventId or stamp is delivered later
//	torn is true         a reader is torn if and only if the request's `after` is below the floor; what was at an id is told if and
//	                     only if it is not below the floor
//	snapshot and events  a snapshot, also one as of an earlier id, and the events after its stamp make the state at any later id
//	liveness             after the faults have ended, every reader reaches the end, and every call succeeds
//
// RunStreams does the same for streams: "one producer", "dense sequences" and "ruled offsets". RunSchedules has several
// processes make the ticks of a schedule, in most runs with one clock that is wrong ("tick"): each tick is one task, and none
// is dropped, since none is late.
//
// RunEngine runs the task engine with producers, workers, operators and upkeep, in several processes or in one that has the
// store to itself. Every commit of a task is checked as it happens:
//
//	task is its events  each task is the fold of its events, and moves only as the table of its life says
//	cause               each event of a task but the first names the one before it as its cause
//	once                a task ends once; under one idempotency key each response is the same
//	stuck, leak         every task ends in the processes that are running, and leaves no item behind; each place of a limit that is
//	                    taken is one lease's, at each commit, whichever process is killed
//	starved, backlog    a claim starts a task that is ready behind others that are held; sweeps make up for lost notifications
//	attempts            starts never exceed attempts
//	lease, fence        a task is started only while it is queued, by one lease; its versions rise
//	limit, unique       limits and unique keys hold at each commit
//	rule, order         a claim that begins after a rule starts nothing that it holds; an ordered queue is never overtaken
//	payload, sizes      a task is started with its payload; a value is refused as invalid if and only if it is
//	busy                no call fails because the store throttles
//	clock               with a clock that is wrong by half a minute or a quarter of an hour, or jumps where it is the only one, no
//	                    lease is ended and no task started before its time
//
// RunInstances does the same with instances that wait for tasks, without faults but the death of all processes:
//
//	woken     in a process that has the store to itself, no instance waits for more than a second beside a task that it may run
//	repeated  a claim that is repeated with its idempotency key has the same tasks, and starts no others
//
// RunExchanges does the same with instances that get their tasks by exchanges, go from process to process, and are drained:
//
//	told      an exchange that is repeated after a response with tasks tells the same, and no others
//	drained   an instance that was drained is given no task by an exchange that begins afterwards: in the process that has drained it, at
//	          once, in others, after a tenth of a second
//
// RunOrders moves orders along chains in the same deployments, while operators act on them, chains and nodes are stopped, and
// definitions change ("order is its events", "one step", "one node", "walk", "then", "hang", "max_orders", "statistics"). Snapshots of
// folders, objects and lists of orders, tasks, jobs and chains, also as of earlier ids, are what the events up to their stamps make
// ("snapshot and events").
//
// RunFlows does the same for chains with forks, prompts, waits for events and times, locks and timeouts, while some act on many orders at
// once:
//
//	one child, join  a child is made once for each fork; a fork joins once, when so many children have ended as it says, and that decides
//	prompt           an answer is given to a question, once, and decides where the order goes
//	lock, leak       a lock is never held by more than may hold it; at the end nobody holds one or waits
//	act              an act on many is done at most once to each order, and to as many as it says
//
// Two runs of one seed are not always identical there, nor are those of streams.
//
// TestLoadSpreads has real workers run tasks of very different lengths on three instances, and compares the time that it takes
// with a lower bound.
//
// The folder mutants removes the rules of docs/journal-protocol.md, and those of the task engine, of exchanges, of schedules and of orders, one by one;
// each removal must be noticed. That of the rule called removal shows itself in a write that is late by as much as several sweeps take, which
// seeds hardly find: package journal has a test for it, TestASlotThatWasEvictedRefusesALateWrite.
//
//	go test ./tests/simulation -run TestInvariants -seeds 5000     many runs, some 80 a second
//	go test ./tests/simulation -run TestInvariants -seed 17 -v     one run, with a trace of every call
//	go test ./tests/simulation -run TestMutants -v                 every rule removed once
package simulation
