// Package journal is the ordered log of events: many processes append at once, followers read everything exactly once
// and in order, and nobody can miss an event.
//
// It is a shared log after CORFU (Balakrishnan et al., NSDI 2012): a sequencer hands out tickets, each a position and
// fresh EventIds; slots, one per position, are written once; a position whose writer died is filled with a void by
// a reader that waits for it. Only the contiguous run of filled slots exists for readers.
//
//	journal.go     opening a journal, its options and errors
//	position.go    keys and pages of slots
//	slot.go        the bytes of a slot
//	origin.go      the bytes in it that say what brought each event about, and who
//	actor.go       on whose behalf events are written
//	append.go      tickets, write-once slots, abandonment
//	advance.go     writes that take their ticket themselves
//	together.go    one write for many parts, in halves if it is refused
//	emit.go        appends of events alone, which share writes
//	announce.go    telling of writes that have landed
//	told.go        conflicts of stores that do not say what they found
//	once.go        idempotency keys, of appends and of whatever else has them
//	failure.go     what callers get for an error of the store
//	read.go        reading and following
//	cause.go       the ids of causes, for readers
//	lineage.go     what led to an event, and what it led to
//	slots.go       the contiguous run of slots
//	holes.go       waiting for missing slots, and filling them
//	locate.go      the search for an EventId
//	tail.go        the newest slots in memory; waking followers
//	fold.go        snapshots: folds of the journal
//	part.go        snapshots of a part of a fold's objects
//	state.go       what a fold keeps: values by key
//	table.go       the packed form of that
//	ledger.go      counts of events, from which retention finds its slot
//	generation.go  stored snapshots, from which a fold starts: their bases, and the changes above them
//	ladder.go      all generations that are kept, and the moments that they tell
//	past.go        snapshots as of an earlier EventId
//	earlier.go     states that a process had, kept in memory
//	layer.go       what a generation is made of: records in chunks
//	upkeep.go      storing changes and bases, step by step
//	drop.go        the removal of layers that no generation needs
//	retention.go   the floor, and the removal of what lies below it
//	restore.go     a new beginning after a restore from a backup
//	verify.go      the check of every slot
//
// The rules that make this safe are those of docs/journal-protocol.md. The code names each where it keeps it, as in
// "Rule (fence)"; the simulator in tests/simulation removes each of them in turn and shows what breaks.
//
// The package imports event, groupcommit and store, and the standard library.
package journal
