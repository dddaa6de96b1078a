// Package stream keeps streams of events (seed 003): each has one writer, its first; each event name in it counts its
// events from 1 without a gap; each consumer has an offset for each name, which moves in order only.
//
// An append is one write of the journal: the event StreamAppended for each event, and with it
//
//	stream.go   what a Streams is opened with, errors, what is known of a stream
//	append.go   what callers ask for, and the lane that each stream's appends go through one write at a time
//	writing.go  one such write: what it rests on, and what it changes
//	once.go     what an idempotency key was answered
//	run.go      events as they are stored: several with following sequences in one item
//	order.go    which event has which place in the stream
//	read.go     what a consumer has not acknowledged, of one name
//	across.go   the same over all names, in the stream's order
//	wait.go     waiting for what comes
//	offset.go   acknowledging, and moving an offset
//	list.go     streams, their names, their consumers
//	keys.go     where all of it lies in the store
//
// The head of a stream holds its producer and how many events it has. The last sequence of each name is an item of its
// own, so that a stream may have any number of names, and each append costs the same: a head that listed them would
// grow, and an item ends at 380 KB. Both are put under the condition that they are as they were read, so that places and
// sequences are dense whatever fails or races.
//
// Entries stay for good: the journal's retention does not touch them.
//
// The package imports event, journal and store.
package stream
