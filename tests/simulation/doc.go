// Package simulation runs the real journal code in virtual time against a store behind a bad network, and checks the
// invariants that design and protocol promise.
//
// One run is drawn from one seed: some processes, each with a journal and a clock of its own; writers, plain, once-only
// and transactional, in all of them; followers, readers backward, takers of snapshots and sweepers; and the faults of
// package faulty, a different mixture for each seed. The same seed is the same run. What everybody was told is compared
// with what was committed, which an audit between network and store has seen:
//
//	I1   ids strictly rise with position
//	I2   every follower sees exactly the journal after its start, whatever its limits and filters
//	I3   acknowledged means present exactly once; a slot is written once
//	I4   definitely refused means absent, with nothing else of that write applied
//	I5   no id at or below a returned lastEventId or stamp is delivered later
//	I6   torn if and only if the request's `after` is below the floor
//	I10  a snapshot and the events after its stamp make the state at any later id
//	     an item changed with events is the fold of its events, in the journal's order
//	     a read sees what was acknowledged before it began; every reader reaches the end
//
// RunStreams does the same for streams: I7, I8 and I9. RunSchedules lets several processes make the ticks of a schedule, most
// often with one clock that is off: each tick is one task, and none is dropped that was not late.
//
// The task engine is run in the same way, by producers, workers, operators and upkeep in several processes, or in one that
// has the store to itself; every commit of a task is checked as it happens:
//
//	I11     each task is the fold of its events, and moves only as the table of its life says
//	        what was acknowledged ends exactly once, in the processes that are there: nothing is stuck, nothing is left over
//	        starts never exceed attempts; a lease that is over changes nothing; limits and unique keys hold at each commit
//	        where one clock goes wrong by half a minute or a quarter of an hour, or the only one jumps, no lease is ended and no
//	        task started before its time
//	        each place of a limit is one lease's, at each commit, whoever is killed
//	        a claim that begins after a rule starts nothing that it holds; an ordered queue is never overtaken
//
// TestLoadSpreads lets real workers run tasks of very different lengths on three instances, and compares the time that it
// takes with what no schedule can beat.
//
// The mutants folder takes the protocol's rules out one by one; each removal must be caught.
//
//	go test ./tests/simulation -run Invariants -seeds 5000       many runs, some 80 a second
//	go test ./tests/simulation -run Invariants -seed 17 -v       one run, with a trace of every call
//	go test ./tests/simulation -run Mutants -v                   every rule missed once
package simulation
