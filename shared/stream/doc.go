// Package stream keeps streams of events as a single-writer event server does (see docs/dialects.md): each stream has one
// producer, its first; each event name in it numbers its events from 1 without a gap; each consumer has an offset for each
// name, which acknowledgements move in order only.
//
// An append is one write of the journal: the event StreamAppended for each event, and with it the stream's own items.
//
//	stream.go   options, errors, the head of a stream
//	append.go   appends, and which of them share a write
//	writing.go  one such write: what it reads, and what it changes
//	once.go     idempotency keys
//	run.go      events as they are stored: several with following sequences in one item
//	order.go    which event has which place in the stream
//	read.go     what a consumer has not acknowledged, of one name
//	across.go   the same over all names, in the stream's order
//	wait.go     waiting for new events
//	offset.go   acknowledging, and moving an offset
//	list.go     streams, their names, their consumers
//	keys.go     the items and their keys
//	uuid.go     ids of producers, consumers and events
//
// The head of a stream holds its producer and how many events it has. The last sequence of each name is an item of its
// own, so that a stream may have any number of names, and each append costs the same: a head that listed them would
// grow, and an item holds 380 KiB at most. Both are put under the condition that they are as they were read, so that places
// and sequences are dense whatever fails or races.
//
// The items never expire, except those of idempotency keys: the journal's retention does not touch them.
//
// The package imports event, event/typed, groupcommit, journal, store and the standard library.
package stream
