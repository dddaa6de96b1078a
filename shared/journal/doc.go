// Package journal is the ordered log of events: many processes append at once, followers read everything exactly once
// and in order, and nobody can miss an event.
//
// It is a shared log after CORFU (Balakrishnan et al., NSDI 2012): a sequencer hands out tickets, each a position and
// fresh EventIds; slots, one per position, are written once; a position whose writer died is filled with a void by
// whoever waits for it. Only the contiguous run of filled slots exists for readers.
//
//	position.go  keys and pages of slots
//	slot.go      the bytes of a slot
//	append.go    tickets, write-once slots, abandonment
//	told.go      conflicts of stores that do not say what they found
//	read.go      the contiguous prefix, holes, the search for an EventId
//	tail.go      what this process knows of the newest slots; waking followers
//	fold.go      snapshots: folds of the journal
//	generation.go  stored snapshots, from which a fold starts: their bases, and the changes above them
//	layer.go     what a generation is made of: records in chunks
//	upkeep.go    how changes are laid up and a base is stored, step by step
//	drop.go      the removal of what no generation needs
//	retention.go the floor, and the removal of what lies below it
//
// The rules that make this safe are marked "Rule:" where they are kept; the simulator in tests/simulation removes each
// of them in turn and shows what breaks.
//
// The package imports event and store, and the standard library.
package journal
